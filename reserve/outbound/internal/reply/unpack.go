package reply

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"strings"
)

// unpacked returns the begin of what was packed, of which only the begin may be there. It returns other encodings than
// gzip and deflate as they are.
func unpacked(begin []byte, encoding string) []byte {
	var r io.Reader
	var err error
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "gzip", "x-gzip":
		r, err = gzip.NewReader(bytes.NewReader(begin))
	case "deflate": // zlib's format (RFC 9110, 8.4.1.2), or by mistake without its header
		if r, err = zlib.NewReader(bytes.NewReader(begin)); err != nil {
			r, err = flate.NewReader(bytes.NewReader(begin)), nil
		}
	default:
		return begin
	}
	if err != nil {
		return begin
	}
	begin, _ = io.ReadAll(io.LimitReader(r, MaxBody))
	return begin
}
