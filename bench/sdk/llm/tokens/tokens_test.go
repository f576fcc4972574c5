// Package tokens measures how far pace's estimate of a prompt is from what OpenAI's tokenizer o200k_base says.
package tokens

import (
	"context"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/tiktoken-go/tokenizer"

	"github.com/nextfree/pace/reserve"
	"github.com/nextfree/pace/reserve/outbound/llm"
)

//go:embed corpus
var corpus embed.FS

// A text is one of the corpus: of a kind, and of a language if it is prose.
type text struct{ name, content string }

// texts returns eight kinds of text and more, and prose in five languages.
func texts(t testing.TB) (all []text) {
	files, err := corpus.ReadDir("corpus")
	require.NoError(t, err)
	for _, f := range files {
		content, err := corpus.ReadFile(path.Join("corpus", f.Name()))
		require.NoError(t, err)
		all = append(all, text{strings.TrimSuffix(f.Name(), ".txt"), string(content)})
	}
	random := rand.New(rand.NewPCG(1, 2))
	bytes := make([]byte, 10_000)
	for i := range bytes {
		bytes[i] = byte(random.Uint32())
	}
	var csv, numbers, log strings.Builder
	levels := []string{"INFO", "WARN", "ERROR", "DEBUG"}
	paths := []string{"/api/v1/users", "/healthz", "/orders/checkout", "/static/app.js"}
	type record struct {
		ID     int      `json:"id"`
		Name   string   `json:"name"`
		Tags   []string `json:"tags"`
		Score  float64  `json:"score"`
		Active bool     `json:"active"`
		Street string   `json:"street"`
	}
	var list []record
	for i := range 300 {
		fmt.Fprintf(&csv, "%d,%.2f,%d,2026-%02d-%02d,%.4f\n", i, random.Float64()*1000, random.IntN(100_000),
			1+random.IntN(12), 1+random.IntN(28), random.Float64())
		fmt.Fprintf(&numbers, "%d ", random.IntN(1_000_000))
		fmt.Fprintf(&log, "2026-11-22T10:%02d:%02d.%03dZ %s [worker-%d] request_id=%016x method=GET path=%s/%d "+
			"status=%d duration=%dms\n",
			random.IntN(60), random.IntN(60), random.IntN(1000), levels[random.IntN(4)], random.IntN(16), random.Uint64(),
			paths[random.IntN(4)], random.IntN(9999), 200+100*random.IntN(4), random.IntN(900))
		name, tags := fmt.Sprint("user", random.IntN(1000)), []string{"red", "large"}
		list = append(list, record{i, name, tags, random.Float64(), i%2 == 0, "Main Street"})
	}
	minified, err := json.Marshal(list)
	require.NoError(t, err)
	indented, err := json.MarshalIndent(list, "", "  ")
	require.NoError(t, err)
	return append(all, text{"csv", csv.String()}, text{"numbers", numbers.String()}, text{"log", log.String()},
		text{"json minified", string(minified)}, text{"json indented", string(indented)},
		text{"sql", strings.Repeat("SELECT u.id, u.name, COUNT(o.id) AS orders FROM users u LEFT JOIN orders o ON o.user_id = u.id "+
			"WHERE u.created_at >= '2026-01-01' GROUP BY u.id HAVING COUNT(o.id) > 3 ORDER BY orders DESC LIMIT 10;\n", 9)},
		text{"capitals", strings.Repeat("WARNING: DO NOT OPEN THIS DOOR WHILE THE MACHINE IS RUNNING. CALL THE OPERATOR FIRST. ", 9)},
		text{"latex", strings.Repeat("\\begin{equation} \\int_{0}^{\\infty} \\frac{x^{n-1}}{e^{x}-1}\\,dx = \\Gamma(n)\\zeta(n) \\end{equation}\n", 9)},
		text{"uuids", strings.Repeat("550e8400-e29b-41d4-a716-446655440000\n6ba7b810-9dad-11d1-80b4-00c04fd430c8\n", 9)},
		text{"dashes", strings.Repeat("----------------------------------------\n| name | value |\n", 9)},
		text{"html", strings.Repeat("<div class=\"card mt-4\"><a href=\"/users/42\">Profile</a><p>Hello, <b>world</b>!</p></div>\n", 9)},
		text{"yaml", strings.Repeat("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\nspec:\n  replicas: 3\n", 9)},
		text{"asm", strings.Repeat("\tMOVQ\t$0x10, %rax\n\tLEAQ\t8(%rsp), %rdi\n\tCALL\truntime.mallocgc(SB)\n", 9)},
		text{"svg", strings.Repeat("<path d=\"M12.5 3.25L20.1 15.75H4.9z\" fill=\"#ff8800\" stroke-width=\"1.5\"/>\n", 9)},
		text{"schema", strings.Repeat(`{"type":"object","properties":{"city":{"type":"string","description":"The city"}},"required":["city"]}`, 9)},
		text{"markdown", strings.Repeat("## Usage\n\n- `make test` runs the tests\n- **make lint** checks the style\n\n> See [the guide](guide.md).\n", 9)},
		text{"emoji", strings.Repeat("Great job! 🎉🚀 See you 😀👍 ", 9)},
		text{"camel case", strings.Repeat("getUserNameFromRequestContext(httpServletRequest).toLowerCase() ", 9)},
		text{"polish", strings.Repeat("Wszyscy ludzie rodzą się wolni i równi w swojej godności i w swoich prawach. Są oni obdarzeni rozumem i sumieniem. ", 9)},
		text{"finnish", strings.Repeat("Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. Heille on annettu järki ja omatunto. ", 9)},
		text{"turkish", strings.Repeat("Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler. ", 9)},
		text{"vietnamese", strings.Repeat("Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. ", 9)},
		text{"greek", strings.Repeat("Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. ", 9)},
		text{"hebrew", strings.Repeat("כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון. ", 9)},
		text{"arabic", strings.Repeat("يولد جميع الناس أحرارا متساوين في الكرامة والحقوق. وقد وهبوا عقلا وضميرا. ", 9)},
		text{"hindi", strings.Repeat("सभी मनुष्यों को गौरव और अधिकारों के मामले में जन्मजात स्वतन्त्रता और समानता प्राप्त है। ", 9)},
		text{"thai", strings.Repeat("มนุษย์ทั้งหลายเกิดมามีอิสระและเสมอภาคกันในเกียรติศักดิ์และสิทธิ ", 9)},
		text{"korean", strings.Repeat("모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. ", 9)},
		text{"japanese", strings.Repeat("すべての人間は、生れながらにして自由であり、かつ、尊厳と権利とについて平等である。", 9)},
		text{"ukrainian", strings.Repeat("Всі люди народжуються вільними і рівними у своїй гідності та правах. ", 9)},
		text{"hex", hex.EncodeToString(bytes)}, text{"base64", base64.StdEncoding.EncodeToString(bytes)})
}

// A recorder is a limiter that notes what it is asked for, and refuses.
type recorder struct{ asked int }

var errNoted = errors.New("noted")

func (r *recorder) ReserveWithin(_ context.Context, n int, _ time.Duration) (reserve.Reservation, error) {
	r.asked = n
	return reserve.Reservation{}, errNoted
}

// estimate returns pace's estimate of a prompt, uncorrected.
func estimate(t testing.TB, prompt string) int {
	asked := &recorder{}
	transport, err := llm.New(nil, llm.OpenAI(), llm.Limits{RequestsPerMinute: 1}, llm.WithSettling(false),
		llm.WithLimiters(func(limit string, _ llm.Key) reserve.Reserver {
			if limit == "input-tokens" {
				return asked
			}
			return nil
		}))
	require.NoError(t, err)
	body, err := json.Marshal(map[string]any{"model": "m", "input": prompt})
	require.NoError(t, err)
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://a/v1/responses", strings.NewReader(string(body)))
	require.NoError(t, err)
	_, err = transport.RoundTrip(r)
	require.ErrorIs(t, err, errNoted)
	return asked.asked
}

// The estimate is within a factor of 2 of o200k_base for each kind of text. Until a call of its kind has ended, twice the
// estimate is reserved, so that no kind is reserved less than it uses.
func TestEstimates(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	require.NoError(t, err)
	for _, text := range texts(t) {
		ids, _, err := codec.Encode(text.content)
		require.NoError(t, err)
		off := 100 * (float64(estimate(t, text.content))/float64(len(ids)) - 1)
		quarter := 100 * (float64(len(text.content))/4/float64(len(ids)) - 1)
		t.Logf("%-14s %6d tokens: %+4.0f %%, a quarter of the bytes %+4.0f %%", text.name, len(ids), off, quarter)
		assert.GreaterOrEqual(t, off, -50., text.name)
		assert.LessOrEqual(t, off, 100., text.name)
	}
}
