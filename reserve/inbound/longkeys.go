package inbound

import (
	"crypto/sha256"
	"net/http"
	"reflect"
	"strings"
	"unsafe"
)

// longestKey is the length of the longest string in a remembered key. Longer strings become their SHA-256.
const longestKey = 64

func shortened[K comparable](key func(*http.Request) (K, error)) func(*http.Request) (K, error) {
	in := stringsIn(reflect.TypeFor[K](), 0)
	if len(in) == 0 {
		return key
	}
	return func(r *http.Request) (K, error) {
		k, err := key(r)
		each(&k, in, func(s string) string {
			if len(s) <= longestKey {
				return s
			}
			sum := sha256.Sum256([]byte(s))
			return string(sum[:])
		})
		return k, err
	}
}

// owned returns a function that copies a key's strings (nil: none): a remembered key must not keep a URL alive.
func owned[K comparable]() func(K) K {
	in := stringsIn(reflect.TypeFor[K](), 0)
	if len(in) == 0 {
		return nil
	}
	return func(k K) K {
		each(&k, in, strings.Clone)
		return k
	}
}

func stringsIn(t reflect.Type, base uintptr) (offsets []uintptr) {
	switch t.Kind() {
	case reflect.String:
		return []uintptr{base}
	case reflect.Struct:
		for i := range t.NumField() {
			offsets = append(offsets, stringsIn(t.Field(i).Type, base+t.Field(i).Offset)...)
		}
	case reflect.Array:
		for _, at := range stringsIn(t.Elem(), base) {
			for i := range t.Len() {
				offsets = append(offsets, at+uintptr(i)*t.Elem().Size())
			}
		}
	}
	return offsets
}

func each[K comparable](key *K, offsets []uintptr, replace func(string) string) {
	for _, at := range offsets {
		s := (*string)(unsafe.Add(unsafe.Pointer(key), at))
		*s = replace(*s)
	}
}
