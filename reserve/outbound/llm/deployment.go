package llm

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Deployment is one of several that serve the same models: see [NewDeployments].
type Deployment struct {
	// All providers must speak the caller's API: [OpenAI] and [AzureOpenAI] do.
	Provider Provider
	// Base is what its provider's SDK calls the base URL, such as
	// https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=2024-10-21. What comes behind /v1
	// (/v1beta, /deployments/DEPLOYMENT) in a request's address is put behind it. Its query goes before the request's.
	Base *url.URL
	// Header is set in each request: the deployment's credential.
	Header http.Header
	// Models are the models that it serves: the callers' name, and the deployment's, which replaces it in the address or
	// in a body of JSON. Nil: all, by the callers' names.
	Models map[string]string
	// Limits are those of each of its models.
	Limits Limits
	// A lower tier is used first, as long as one of its deployments has room.
	Tier int
}

var credentials = []string{
	"Authorization", "Api-Key", "X-Api-Key", "X-Goog-Api-Key", "Openai-Organization", "Openai-Project",
}

func (d *Deployment) name(model string) (name string, ok bool) {
	if d.Models == nil || model == "" {
		return model, true
	}
	name, ok = d.Models[model]
	return name, ok
}

func (m *member) rewrite(r *http.Request, e *endpoint, name string) *http.Request {
	path := callPath(r.URL.EscapedPath())
	if e.model != "" && name != e.model {
		path = strings.Replace(path, url.PathEscape(e.model), url.PathEscape(name), 1)
	}
	query := r.URL.Query()
	query.Del("key") // Google's form of a credential
	for key := range m.Base.Query() {
		query.Del(key)
	}
	own := r.WithContext(r.Context())
	own.URL = &url.URL{RawQuery: query.Encode()}
	own.URL.Path, _ = url.PathUnescape(path)
	own.URL.RawPath = path
	own.Header = r.Header.Clone()
	for _, c := range credentials {
		own.Header.Del(c)
	}
	return m.upstream.Address(own)
}

// sdkBase is what an SDK's base URL has of a path: up to the name of a deployment, or else to the version.
var sdkBase = regexp.MustCompile(`^(.*?/deployments/[^/]*|.*?/v[0-9][^/]*)`)

func callPath(path string) string { return strings.TrimPrefix(sdkBase.ReplaceAllString(path, ""), "/") }

// renamed returns the body with another model.
func (p *prompt) renamed(name string) []byte {
	quoted, _ := json.Marshal(name)
	return slices.Concat(p.body[:p.modelAt-1], quoted, p.body[p.modelEnd+1:])
}

func withBody(r *http.Request, body []byte) *http.Request {
	own := r.WithContext(r.Context())
	own.ContentLength = int64(len(body))
	own.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	own.Body, _ = own.GetBody()
	return own
}
