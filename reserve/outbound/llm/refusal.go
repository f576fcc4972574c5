package llm

import (
	"bytes"
	"encoding/json"
	"errors"
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
	content, headers := t.preset.refusal("pace: " + strings.TrimPrefix(err.Error(), "pace: "))
	text, err := json.Marshal(content)
	if err != nil {
		return nil
	}
	h := http.Header{"Content-Type": {"application/json"}, "X-Should-Retry": {"false"}}
	for name, value := range headers {
		h.Set(name, value)
	}
	return &http.Response{
		Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(bytes.NewReader(text)), ContentLength: int64(len(text)), Request: r,
	}
}

func isRefusal(r *http.Response) bool {
	switch r.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable, 529:
		return true
	}
	return false
}
