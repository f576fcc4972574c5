package llm

import (
	"regexp"
	"strings"
)

// A PDF page has some 2,000 tokens and 50 KB, a second of sound 10 to 32 tokens and 16 KB, of video 300 and 250 KB.
const (
	imageTokens     = 1000
	bytesPerPDF     = 25
	bytesPerSeconds = 800
)

var (
	base64Begins = regexp.MustCompile(`^(data:[^,]{0,90};base64,)?[A-Za-z0-9+/=_\\-]*$`)
	// WAVE, MP3, Ogg, FLAC, MP4
	soundBegins = regexp.MustCompile(`^(UklGR.{7}QVZF|SUQz|//[uvM]|T2dn|ZkxhQ|AAAA)`)
)

func isBase64(text []byte) bool { return base64Begins.Match(text) }

// tokensOfBlob estimates a file of length characters of base64 that begin so.
func tokensOfBlob(text string, length int) int {
	form, data, typed := strings.Cut(text, ";base64,")
	if !typed {
		data = text
	}
	switch size := length / 4 * 3; {
	case strings.HasPrefix(data, "JVBER"): // %PDF
		return max(imageTokens, size/bytesPerPDF)
	case typed && strings.HasPrefix(form, "data:text/"):
		return size / bytesPerToken
	case soundBegins.MatchString(data):
		return max(1, size/bytesPerSeconds)
	}
	return imageTokens
}
