package llm

import "bytes"

// A PDF page has some 2,000 tokens and 50 KB, a second of sound 10 to 32 tokens and 16 KB, of video 300 and 250 KB.
const (
	imageTokens     = 1000
	bytesPerPDF     = 25
	bytesPerSeconds = 800
)

// tokensOfBlob estimates a file of length characters of base64.
func tokensOfBlob(text []byte, length int) int {
	typed := ""
	if before, after, ok := bytes.Cut(text, []byte(";base64,")); ok {
		typed, text = string(before), after
	}
	size := length / 4 * 3
	begins := func(with ...string) bool {
		for _, w := range with {
			if bytes.HasPrefix(text, []byte(w)) {
				return true
			}
		}
		return false
	}
	switch {
	case begins("JVBER"): // %PDF
		return max(imageTokens, size/bytesPerPDF)
	case bytes.HasPrefix([]byte(typed), []byte("data:text/")):
		return size / bytesPerToken
	case begins("UklGR") && len(text) >= 16 && string(text[12:16]) == "QVZF", // RIFF with WAVE
		begins("SUQz", "//u", "//v", "//M", "T2dn", "ZkxhQ", "AAAA"): // MP3, Ogg, FLAC, MP4
		return max(1, size/bytesPerSeconds)
	}
	return imageTokens
}
