package reply

import (
	"cmp"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// saying is a response, and what is read of it.
type saying struct {
	name, url string
	status    int
	lines     string
	body      string
	want      Reply // of these: Refused, Final, NotRate, After (or the stop of a limit), Penalty
}

func (c *saying) read(t *testing.T) Reply {
	h := http.Header{"Content-Type": {"application/json"}}
	if c.lines != "" {
		for name, v := range headers(strings.Split(c.lines, "\n")...) {
			h[name] = v
		}
	}
	h.Set("Date", cmp.Or(h.Get("Date"), "Sat, 21 Nov 2026 12:00:00 GMT"))
	r := &http.Response{StatusCode: c.status, Header: h, Body: io.NopCloser(strings.NewReader(c.body))}
	r.Request = httptest.NewRequest(http.MethodPost, cmp.Or(c.url, "https://api.example.com/v1/x"), nil)
	s := Read(r, received)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.Equal(t, c.body, string(body), "the caller reads it, too")
	for _, l := range s.Limits {
		if s.Refused && !s.Told && l.Stop > 0 {
			s.After = max(s.After, l.Stop)
		}
	}
	return Reply{Refused: s.Refused, Final: s.Final, NotRate: s.NotRate, After: s.After, Penalty: s.Penalty}
}

func sayings(t *testing.T, all []saying) {
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, c.read(t)) })
	}
}

// Refusals of clouds, as their SDKs and documentation know them.
func TestRefusalsOfClouds(t *testing.T) {
	const s, id = time.Second, "X-Amzn-Requestid: 1"
	const aws, github = "https://dynamodb.us-east-1.amazonaws.com/", "https://api.github.com/repos/a/b"
	refused := func(after time.Duration) Reply { return Reply{Refused: true, After: after} }
	final := Reply{Refused: true, Final: true}
	sayings(t, []saying{
		// The codes of github.com/aws/aws-sdk-go-v2/aws/retry.DefaultThrottleErrorCodes, in each protocol.
		{"AWS JSON, an account's throughput", aws, 400, id, `{"__type":"com.amazonaws.dynamodb.v20120810#RequestLimitExceeded","message":"x"}`, refused(0)},
		{"AWS JSON, too many", aws, 400, id, `{"__type":"TooManyRequestsException","message":"Rate exceeded"}`, refused(0)},
		{"AWS JSON, throttled", aws, 400, id, `{"__type":"com.amazonaws.sqs#RequestThrottled","message":"x"}`, refused(0)},
		{"AWS JSON, provisioned", aws, 400, id, `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}`, refused(0)},
		{"AWS JSON, a limit that is a rate", aws, 400, id, `{"__type":"LimitExceededException","message":"Rate exceeded for stream x"}`, refused(0)},
		{"AWS JSON, a limit that is none", aws, 400, id, `{"__type":"LimitExceededException","message":"Subscriber limit exceeded: max 10"}`, Reply{}},
		{"AWS JSON, a mistake that mentions it", aws, 400, id, `{"__type":"ValidationException","message":"No handler for ThrottlingException"}`, Reply{}},
		{"AWS XML, a queue's", aws, 403, id, `<ErrorResponse><Error><Type>Sender</Type><Code>RequestThrottled</Code></Error></ErrorResponse>`, refused(0)},
		{"AWS XML, mail", aws, 400, id, `<ErrorResponse><Error><Code>Throttling</Code><Message>Maximum sending rate exceeded.</Message></Error></ErrorResponse>`, refused(0)},
		{"AWS XML, names", aws, 400, id, `<ErrorResponse><Error><Code>PriorRequestNotComplete</Code></Error></ErrorResponse>`, refused(0)},
		{"AWS XML, a mistake", aws, 400, id, `<ErrorResponse><Error><Code>ValidationError</Code><Message>Rate limit must be below 5</Message></Error></ErrorResponse>`, Reply{}},
		{"AWS, a header's code", aws, 400, "X-Amzn-Errortype: ThrottledException", "", refused(0)},
		{"AWS, forbidden", aws, 400, "X-Amzn-Errortype: AccessDeniedException\n" + id, `{"message":"not authorized to perform throttling:Do"}`, Reply{}},
		{"S3", "https://b.s3.amazonaws.com/k", 503, "", `<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`, refused(0)},
		{"Lambda, at a time", aws, 429, "X-Amzn-Errortype: TooManyRequestsException", `{"Reason":"ReservedFunctionConcurrentInvocationLimitExceeded"}`, Reply{Refused: true, NotRate: true}},
		{"Lambda, a rate", aws, 429, "X-Amzn-Errortype: TooManyRequestsException", `{"Reason":"CallerRateLimitExceeded"}`, refused(0)},
		{"Bedrock's day", aws, 429, "X-Amzn-Errortype: ThrottlingException\n" + id, `{"message":"Too many tokens per day, please wait before trying again."}`, final},
		{"Google, a full drive", "https://www.googleapis.com/drive/v3/files", 403, "", `{"error":{"errors":[{"reason":"storageQuotaExceeded"}],"message":"The user's Drive storage quota has been exceeded."}}`, Reply{}},
		{"Google, until then in words", "https://gmail.googleapis.com/", 429, "", `{"error":{"message":"User-rate limit exceeded.  Retry after 2026-11-21T12:05:00.000Z"}}`, refused(300 * s)},
		{"BigQuery, at a time", "https://bigquery.googleapis.com/", 403, "", `{"error":{"message":"Exceeded rate limits: too many concurrent queries","errors":[{"reason":"rateLimitExceeded"}]}}`, Reply{Refused: true, NotRate: true}},
		{"Dynamics, at a time, until then", "", 429, "Retry-After: 20", `{"error":{"message":"Number of concurrent requests exceeded the limit of 52."}}`, refused(20 * s)},
		{"Alibaba", "https://ecs.aliyuncs.com/", 400, "", `{"Code":"Throttling.User","Message":"Request was denied due to user flow control."}`, refused(0)},
		{"Tencent", "https://cvm.tencentcloudapi.com/", 200, "", `{"Response":{"Error":{"Code":"RequestLimitExceeded"},"RequestId":"x"}}`, refused(0)},
		{"Tencent, fine", "https://cvm.tencentcloudapi.com/", 200, "", `{"Response":{"TotalCount":0,"RequestId":"RequestLimitExceeded"}}`, Reply{}},
		{"Baidu", "https://aip.baidubce.com/", 200, "", `{"error_code":18,"error_msg":"Open api qps request limit reached"}`, refused(0)},
		{"Docker Hub", "https://registry-1.docker.io/v2/x", 429, "Ratelimit-Limit: 100;w=21600\nRatelimit-Remaining: 0;w=21600", `{"errors":[{"code":"TOOMANYREQUESTS"}]}`, refused(0)},
		{"GitHub's secondary limit in GraphQL", "https://api.github.com/graphql", 200, "X-RateLimit-Limit: 5000\nX-RateLimit-Remaining: 4900\nX-RateLimit-Reset: 1795266000",
			`{"errors":[{"type":"RATE_LIMITED","message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}]}`, Reply{Refused: true, Penalty: time.Minute}},
		{"GitHub, before 2021", github, 403, "", `{"message":"You have triggered an abuse detection mechanism. Please wait a few minutes before you try again."}`, Reply{Refused: true, Penalty: time.Minute}},
		{"GitHub, content", github, 422, "", `{"message":"Validation Failed","errors":["was submitted too quickly"]}`, Reply{Refused: true, Penalty: time.Minute}},
		{"GitHub, a mistake", github, 422, "", `{"message":"Validation Failed","errors":[{"code":"missing_field"}]}`, Reply{}},
		{"GitHub, forbidden", github, 403, "X-RateLimit-Remaining: 4900\nX-RateLimit-Reset: 1795266000", `{"message":"Resource not accessible by integration","documentation_url":"https://docs.github.com/rest#rate-limits"}`, Reply{}},
		{"Kubernetes, forbidden", "", 403, "", `{"kind":"Status","message":"pods is forbidden: exceeded quota: compute","reason":"Forbidden","code":403}`, Reply{}},
		{"Shopify, before codes", "https://x.myshopify.com/admin/api/2019-07/graphql.json", 200, "", `{"data":null,"errors":[{"message":"Throttled"}],"extensions":{"cost":{"requestedQueryCost":202,"throttleStatus":{"maximumAvailable":1000,"currentlyAvailable":118,"restoreRate":50}}}}`, refused(1680 * time.Millisecond)},
		{"Shopify, never", "https://x.myshopify.com/admin/api/2026-01/graphql.json", 200, "", `{"errors":[{"message":"Query cost is 2103, which exceeds the single query max cost limit (1000).","extensions":{"code":"MAX_COST_EXCEEDED"}}]}`, Reply{}},
	})
}

// Refusals of exchanges, networks and others.
func TestRefusalsOfExchangesAndNetworks(t *testing.T) {
	const s = time.Second
	refused := func(after time.Duration) Reply { return Reply{Refused: true, After: after} }
	final := Reply{Refused: true, Final: true}
	sayings(t, []saying{
		{"Binance, a ban", "https://api.binance.com/", 418, "", `{"code":-1003,"msg":"Way too much request weight used; IP banned until 1795262490000. Please use WebSocket Streams for live updates."}`, refused(90 * s)},
		{"a teapot", "", 418, "", `{"error":"I'm a teapot"}`, Reply{}},
		{"Kraken, locked out", "https://api.kraken.com/0/private/Balance", 200, "", `{"error":["EGeneral:Temporary lockout"]}`, Reply{Refused: true, Penalty: 15 * time.Minute}},
		{"Kraken, orders", "https://api.kraken.com/0/private/AddOrder", 200, "", `{"error":["EOrder:Rate limit exceeded"]}`, refused(0)},
		{"Kraken, a mistake", "https://api.kraken.com/0/public/Depth", 200, "", `{"error":["EQuery:Unknown asset pair"]}`, Reply{}},
		{"Kraken, fine", "https://api.kraken.com/0/public/Depth", 200, "", `{"error":[],"result":{"x":"rate limit"}}`, Reply{}},
		{"OKX", "https://www.okx.com/api/v5/x", 200, "", `{"code":"50011","data":[],"msg":"Too Many Requests"}`, refused(0)},
		{"Bitfinex", "https://api.bitfinex.com/v2/x", 500, "", `["error",11010,"ratelimit: error"]`, refused(0)},
		{"KuCoin", "https://api.kucoin.com/x", 429, "Gw-Ratelimit-Limit: 500\nGw-Ratelimit-Remaining: 0\nGw-Ratelimit-Reset: 14489", `{"code":"429000"}`, refused(14489 * time.Millisecond)},
		{"Deribit", "https://www.deribit.com/api/v2/x", 400, "", `{"error":{"code":10028,"message":"too_many_requests","data":{"wait":2}}}`, refused(2 * s)},
		{"Infura", "https://mainnet.infura.io/v3/k", 200, "", `{"jsonrpc":"2.0","error":{"code":-32005,"message":"daily request count exceeded, request rate limited"}}`, refused(0)},
		{"Infura, until then", "https://mainnet.infura.io/v3/k", 429, "", `{"error":{"code":-32005,"data":{"rate":{"backoff_seconds":30}}}}`, refused(30 * s)},
		{"Infura, one of a batch", "https://mainnet.infura.io/v3/k", 200, "", `[{"result":"0x1"},{"error":{"code":-32005,"message":"request rate limited"}}]`, Reply{}},
		{"Alchemy", "https://eth-mainnet.g.alchemy.com/v2/k", 200, "", `{"error":{"code":429,"message":"Your app has exceeded its compute units per second capacity."}}`, refused(0)},
		{"BscScan", "https://api.bscscan.com/api", 200, "", `{"status":"0","message":"NOTOK","result":"Max calls per sec rate limit reached (5/sec)"}`, refused(0)},
		{"Reddit", "https://oauth.reddit.com/api/submit", 200, "", `{"json":{"errors":[["RATELIMIT","you are doing that too much. try again in 9 minutes.","ratelimit"]]}}`, refused(540 * s)},
		{"Reddit, a list about it", "https://oauth.reddit.com/r/x", 200, "", `{"data":{"children":[{"data":{"title":"429","reason":"rate limit exceeded"}}]}}`, Reply{}},
		{"Slack, messages about it", "https://slack.com/api/conversations.history", 200, "", `{"ok":true,"messages":[{"type":"ratelimited"}]}`, Reply{}},
		{"Last.fm", "https://ws.audioscrobbler.com/2.0/", 200, "", `{"message":"Rate Limit Exceeded","error":29}`, refused(0)},
		{"WeChat", "https://api.weixin.qq.com/cgi-bin/x", 200, "", `{"errcode":45011,"errmsg":"api minute-quota reach limit"}`, refused(0)},
		{"Feishu", "https://open.feishu.cn/open-apis/x", 400, "X-Ogw-Ratelimit-Reset: 42", `{"code":99991400,"msg":"request trigger frequency limit"}`, refused(42 * s)},
		{"Weibo", "", 403, "", `{"error":"User requests out of rate limit!","error_code":10023}`, refused(0)},
		{"LinkedIn's day", "https://api.linkedin.com/v2/x", 429, "", `{"message":"Resource level throttle APPLICATION DAY limit for calls to this resource is reached."}`, final},
		{"X's month", "https://api.x.com/2/x", 429, "", `{"title":"UsageCapExceeded","period":"Monthly"}`, final},
		{"X's day", "https://api.x.com/2/tweets", 429, "X-Rate-Limit-Limit: 300\nX-Rate-Limit-Remaining: 299\nX-Rate-Limit-Reset: 1795263000\nX-App-Limit-24hour-Limit: 17\nX-App-Limit-24hour-Remaining: 0\nX-App-Limit-24hour-Reset: 1795269600", "", refused(2 * time.Hour)},
		{"Airtable's month", "https://api.airtable.com/v0/x", 429, "", `{"errors":[{"error":"PUBLIC_API_BILLING_LIMIT_EXCEEDED"}]}`, final},
		{"Tumblr's hour", "https://api.tumblr.com/v2/x", 429, "X-RateLimit-PerHour-Limit: 1000\nX-RateLimit-PerHour-Remaining: 0\nX-RateLimit-PerHour-Reset: 1234", "", refused(1234 * s)},
		{"ip-api.com", "http://ip-api.com/json", 429, "X-Rl: 0\nX-Ttl: 33", "", refused(33 * s)},
		{"Mashery", "", 403, "X-Mashery-Error-Code: ERR_403_DEVELOPER_OVER_QPS", "<h1>Developer Over Qps</h1>", refused(0)},
		{"Mashery, forbidden", "", 403, "X-Mashery-Error-Code: ERR_403_DEVELOPER_INACTIVE", "<h1>Developer Inactive</h1>", Reply{}},
		{"QuickBooks", "", 403, "", `{"fault":{"error":[{"message":"message=ThrottleExceeded; errorCode=003001; statusCode=403"}]}}`, refused(0)},
		{"NetSuite", "https://1.restlets.api.netsuite.com/x", 400, "", `{"error":{"code":"SSS_REQUEST_LIMIT_EXCEEDED"}}`, refused(0)},
		{"Django", "", 429, "", `{"detail":"Request was throttled. Expected available in 86 seconds."}`, refused(86 * s)},
		{"Cloudflare's page", "", 429, "Content-Type: text/html", "<title>Access denied</title>Error 1015 You are being rate limited", refused(0)},
		{"Cloudflare, forbidden", "", 403, "Content-Type: text/html", "<title>Access denied</title>Error 1020", Reply{}},
		{"Akamai, forbidden", "", 403, "Content-Type: text/html", "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD>Reference #18.1</HTML>", Reply{}},
		// Of models.
		{"Anthropic, no room for a moment", "https://api.anthropic.com/v1/messages", 429, "X-Should-Retry: true", `{"error":{"type":"rate_limit_error","message":"x"}}`, refused(0)},
		{"Anthropic, a limit a minute", "https://api.anthropic.com/v1/messages", 429, "", `{"error":{"type":"rate_limit_error","message":"would exceed the rate limit of 40,000 input tokens per minute"}}`, refused(0)},
		{"Anthropic, at a time", "https://api.anthropic.com/v1/messages", 429, "", `{"error":{"type":"rate_limit_error","message":"Number of concurrent connections has exceeded your rate limit."}}`, Reply{Refused: true, NotRate: true}},
		{"Anthropic, spent", "https://api.anthropic.com/v1/messages", 429, "", `{"error":{"type":"rate_limit_error","message":"x"}}`, final},
		{"OpenRouter, in a text", "https://openrouter.ai/api/v1/x", 429, "", `{"error":{"code":429,"metadata":{"raw":"{\"error\": {\"details\": [{\"retryDelay\": \"17s\"}]}}"}}}`, refused(17 * s)},
		{"Hugging Face, loading", "https://api-inference.huggingface.co/models/x", 503, "", `{"error":"Model x is currently loading","estimated_time":20.0}`, refused(20 * s)},
		{"Mistral, tokens", "https://api.mistral.ai/v1/x", 429, "Ratelimitbysize-Limit: 500000\nRatelimitbysize-Remaining: 0\nRatelimitbysize-Reset: 24", `{"message":"Requests rate limit exceeded"}`, refused(24 * s)},
		{"MiniMax", "https://api.minimax.io/v1/x", 200, "", `{"base_resp":{"status_code":1002,"status_msg":"rate limit exceeded(RPM)"}}`, refused(0)},
		{"Cohere's month", "https://api.cohere.com/v2/chat", 429, "", `{"message":"You are using a Trial key, which is limited to 1000 API calls / month."}`, final},
	})
}

// Headers as servers and proxies send them, and as nobody should.
func TestOddHeaders(t *testing.T) {
	const s = time.Second
	refused := func(after time.Duration) Reply { return Reply{Refused: true, After: after} }
	sayings(t, []saying{
		{"repeated: the longest", "", 429, "Retry-After: 5\nRetry-After: 30\nRetry-After: 7", "", refused(30 * s)},
		{"repeated: one is malformed", "", 429, "Retry-After: soon\nRetry-After: 30", "", refused(30 * s)},
		{"quoted", "", 429, `Retry-After: "30"`, "", refused(30 * s)},
		{"a date with an offset", "", 429, "Retry-After: Sat, 21 Nov 2026 13:00:30 +0100", "", refused(30 * s)},
		{"a date, the server's clock is behind", "", 429, "Date: Sat, 21 Nov 2026 11:00:00 GMT\nRetry-After: Sat, 21 Nov 2026 11:00:30 GMT", "", refused(30 * s)},
		{"negative", "", 429, "Retry-After: -30", "", refused(0)},
		{"a year", "", 429, "Retry-After: 31536000", "", refused(0)},
		{"limits in several lines", "", 429, "X-RateLimit-Limit: 100\nX-RateLimit-Limit: 10\nX-RateLimit-Remaining: 50\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 3600\nX-RateLimit-Reset: 30", "", refused(30 * s)},
		{"a reset for several limits", "", 429, "X-RateLimit-Remaining: 50, 0\nX-RateLimit-Reset: 30", "", refused(30 * s)},
		{"a refusal with a reset only", "", 429, "X-RateLimit-Reset: 30", "", refused(30 * s)},
		{"a refusal with the time to a reset only", "", 429, "X-RateLimit-Reset-After: 12.5", "", refused(12500 * time.Millisecond)},
		{"a refusal with the draft's reset only", "", 429, "RateLimit-Reset: 30", "", refused(30 * s)},
		{"an answer with a reset only", "", 200, "X-RateLimit-Limit: 100\nX-RateLimit-Reset: 1795266000", "", Reply{}},
		{"maintenance", "", 503, "Retry-After: 3600", "", refused(time.Hour)},
		{"a login with a wait", "", 401, "Retry-After: 30", "", Reply{After: 30 * s}},
		{"a body that is cut off", "", 429, "", `{"error":{"code":429,"details":[{"retryDelay":"36s"},{"x":"aaaa`, refused(36 * s)},
		{"an answer that is cut off", "https://api.example.com/graphql", 200, "", `{"errors":[{"type":"RATE_LIMITED"}],"data":{"x`, Reply{}},
		{"a deep body", "", 429, "", strings.Repeat("[", 60000), refused(0)},
		{"a gateway's text", "", 403, "", `{"message":"{\"error\":{\"code\":\"rate_limit_exceeded\",\"retry_after\":9}}"}`, refused(9 * s)},
		{"only a sentence", "", 403, "", `{"message":"You have exceeded your API rate limit"}`, refused(0)},
		{"a list of sentences", "", 403, "", `{"errors":["Rate limit exceeded"]}`, refused(0)},
		{"a sentence about it", "", 403, "", `{"error":"You are not allowed to change the rate limit of this key"}`, Reply{}},
		{"a reason about it", "", 403, "", `{"reason":"throttling policy may not be edited by this role"}`, Reply{}},
		{"a page about it", "", 403, "Content-Type: text/html", "<p>Forbidden. See <a>our rate limits</a></p>", Reply{}},
		{"an answer about it", "", 200, "", `{"error":"rate limit exceeded"}`, Reply{}},
		{"another status about it", "", 404, "", `{"error":{"code":"rate_limit_exceeded"}}`, Reply{}},
		{"an answer with braces in a text", "https://api.example.com/graphql", 200, "", `{"errors":[{"type":"RATE_LIMITED"}],"data":{"x":"{y}"}}`, Reply{}},
		{"a field of that name", "https://api.example.com/graphql", 200, "", `{"errors":[{"message":"Cannot query field \"rateLimit\" on type \"X\""}]}`, Reply{}},
		{"Apollo, only a sentence", "https://api.example.com/graphql", 200, "", `{"errors":[{"message":"Too many requests, please try again in 54 seconds.","extensions":{"code":"INTERNAL_SERVER_ERROR"}}]}`, refused(54 * s)},
	})
}

// A subscription that is used up, and may go on for money, is not stopped.
func TestOverage(t *testing.T) {
	h := headers("Anthropic-Ratelimit-Unified-Status: rejected", "Anthropic-Ratelimit-Unified-Reset: 1795266000")
	require.Equal(t, time.Hour, read(200, h).Limits[0].Stop)
	h.Set("Anthropic-Ratelimit-Unified-Overage-Status", "allowed_warning")
	require.Empty(t, read(200, h).Limits)
}

// Of a body that stops on its way, or breaks, what came is read, and the caller gets all of it.
func TestSlowBody(t *testing.T) {
	for name, end := range map[string]error{"it goes on": io.EOF, "it breaks": io.ErrUnexpectedEOF} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				body, w := io.Pipe()
				begin := time.Now()
				go func() {
					io.WriteString(w, `{"retry_after":30,`)
					<-time.After(time.Minute)
					io.WriteString(w, `"x":1}`)
					w.CloseWithError(end)
				}()
				r := &http.Response{StatusCode: 429, Header: http.Header{}, Body: body}
				require.Equal(t, 30*time.Second, Read(r, received).After)
				require.Equal(t, maxPeek, time.Since(begin))
				all, err := io.ReadAll(r.Body)
				require.Equal(t, `{"retry_after":30,"x":1}`, string(all))
				require.Equal(t, end == io.EOF, err == nil)
			})
		})
	}
}
