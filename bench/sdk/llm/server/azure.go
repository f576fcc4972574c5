package server

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// azureHeaders are OpenAI's, in whole seconds.
func azureHeaders(h http.Header, meters []*meter, now time.Time) {
	openAIHeaders(h, meters, now)
	for _, m := range meters {
		if name := "X-Ratelimit-Reset-" + m.name; h.Get(name) != "" {
			h.Set(name, strconv.FormatInt(ceil(m.untilFull(now), time.Second), 10))
		}
	}
}

func refuseAzure(w http.ResponseWriter, c *call, why *refusal) {
	kind := "token"
	if why.limit == requests {
		kind = "call"
	}
	seconds := ceil(why.wait, time.Second)
	message := fmt.Sprintf("Requests to the ChatCompletions_Create Operation under Azure OpenAI API version 2024-10-21 have exceeded %s rate limit of your current AIServices S0 pricing tier.", kind)
	if why.larger {
		message += " The request is larger than the limit."
	} else {
		message += fmt.Sprintf(" Please retry after %d seconds.", seconds)
		retryAfter(w.Header(), why.wait)
		w.Header().Set("X-Ms-Retry-After-Ms", strconv.FormatInt(ceil(why.wait, time.Millisecond), 10))
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(ceil(why.wait, time.Millisecond), 10))
	}
	writeJSON(w, http.StatusTooManyRequests, object{"error": object{"code": "429", "message": message}})
}
