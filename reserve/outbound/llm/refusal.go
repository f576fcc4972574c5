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

func (t *Transport) refusal(r *http.Request, err error) *http.Response {
	var wait *reserve.WaitError
	var large *TooLargeError
	if !errors.As(err, &wait) && !errors.As(err, &large) {
		return nil
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
	}
}

func isRefusal(status int) bool { return status == 429 || status == 503 || status == 529 }
