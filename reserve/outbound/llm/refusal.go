package llm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/nextfree/pace/reserve"
)

// answered makes a response of some errors, if [AnswerRefusals] wants it.
func (t *Transport) answered(r *http.Request, response *http.Response, err error) (*http.Response, error) {
	if err == nil || !t.answer {
		return response, err
	}
	var wait *reserve.WaitError
	var large *TooLargeError
	if !errors.As(err, &wait) && !errors.As(err, &large) {
		return response, err
	}
	message, _ := json.Marshal("pace: " + strings.TrimPrefix(err.Error(), "pace: "))
	text := fmt.Sprintf(t.preset.refusal, message)
	h := http.Header{"Content-Type": {"application/json"}, "X-Should-Retry": {"false"}}
	if t.preset.amazon != "" {
		h.Set("X-Amzn-Errortype", t.preset.amazon)
	}
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}, nil
}
