package llm

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
)

// Key says whose quota a call uses. Its model is that of the address, or else of the body.
type Key struct {
	Host  string // as in the request's address
	Model string // as the request names it, or the deployment; the first 128 bytes. Empty: it does not say
	// Credential is a part of the credential's SHA-256, the same in all processes. Nothing else of it is kept.
	Credential uint64
}

// String returns the key in a form that fits a name in Redis: "api.openai.com/gpt-5/0123456789abcdef".
func (k Key) String() string { return fmt.Sprintf("%s/%s/%016x", k.Host, k.Model, k.Credential) }

// maxModel bounds names that others choose.
const maxModel = 128

func cutModel(name string) string {
	if len(name) > maxModel {
		name = name[:maxModel]
	}
	return strings.ToValidUTF8(name, "?")
}

func identify(of []string) uint64 {
	h := sha256.Sum256([]byte(strings.Join(of, "\x00")))
	return binary.BigEndian.Uint64(h[:])
}

// byHeaders returns the first values of headers, given by canonical names.
func byHeaders(names ...string) func(*http.Request) []string {
	return func(r *http.Request) (values []string) {
		for _, name := range names {
			values = append(values, r.Header.Get(name))
		}
		return values
	}
}

func geminiCredential(r *http.Request) []string {
	if _, project, ok := strings.Cut(r.URL.Path, "/projects/"); ok { // Vertex AI, whose tokens change every hour
		project, _, _ = strings.Cut(project, "/publishers/")
		return []string{project}
	}
	return []string{cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"), r.Header.Get("Authorization"))}
}

func bedrockCredential(r *http.Request) []string {
	a := r.Header.Get("Authorization")
	if _, after, ok := strings.Cut(a, "Credential="); ok { // the rest of it is another one for each request
		if a, _, _ = strings.Cut(after, "/"); strings.HasPrefix(a, "ASIA") {
			a = ""
		}
	}
	return []string{a}
}
