package llm

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/http"
	"strings"
	"sync"
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

type identity struct {
	r    *http.Request
	text [512]byte
	n    int
}

func (i *identity) add(s string) {
	if len(s) > len(i.text)-i.n-1 { // a token of 2 KiB: its hash stands for it
		h := sha256.Sum256([]byte(s))
		s = string(h[:])
		i.n = min(i.n, len(i.text)-1-len(s))
	}
	i.n += copy(i.text[i.n:], s)
	i.text[i.n] = 0
	i.n++
}

var identities = sync.Pool{New: func() any { return new(identity) }}

func identify(r *http.Request, by func(*identity)) uint64 {
	i := identities.Get().(*identity)
	i.r, i.n = r, 0
	by(i)
	h := sha256.Sum256(i.text[:i.n])
	clear(i.text[:i.n]) // no credential is kept
	i.r = nil
	identities.Put(i)
	return binary.BigEndian.Uint64(h[:])
}

// byHeaders takes canonical names.
func byHeaders(names ...string) func(*identity) {
	return func(i *identity) {
		for _, name := range names {
			value := ""
			if v := i.r.Header[name]; len(v) > 0 {
				value = v[0]
			}
			i.add(value)
		}
	}
}

func geminiCredential(i *identity) {
	if at := strings.Index(i.r.URL.Path, "/projects/"); at >= 0 { // Vertex AI, whose tokens change every hour
		project, _, _ := strings.Cut(i.r.URL.Path[at:], "/publishers/")
		i.add(project)
		return
	}
	key := i.r.Header.Get("X-Goog-Api-Key")
	if key == "" && strings.Contains(i.r.URL.RawQuery, "key=") {
		key = i.r.URL.Query().Get("key")
	}
	if key == "" {
		key = i.r.Header.Get("Authorization")
	}
	i.add(key)
}

func bedrockCredential(i *identity) {
	a := i.r.Header.Get("Authorization")
	if _, after, ok := strings.Cut(a, "Credential="); ok { // the rest of it is another one for each request
		if a, _, _ = strings.Cut(after, "/"); strings.HasPrefix(a, "ASIA") {
			a = ""
		}
	}
	i.add(a)
}
