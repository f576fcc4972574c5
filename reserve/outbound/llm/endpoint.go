package llm

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
)

type endpoint struct {
	free   bool   // it uses no limit of a model's
	silent bool   // it puts out no tokens
	images bool   // it puts out images
	name   string // of the endpoint, such as "completions": its path's last part
	model  string // "": the path names none
}

// freeEnds ask no model for anything, or are limited otherwise.
var freeEnds = strings.Fields("batches batchPredictionJobs batchGenerateContent asyncBatchEmbedContent files uploads " +
	"upload blobs cancel count_tokens countTokens computeTokens count-tokens input_tokens tokenize detokenize " +
	"models jobs vector_stores file_batches search assistants threads conversations items evals cachedContents " +
	"tunedModels containers sessions client_secrets pull push create copy show delete")

var silentEnds = strings.Fields("embeddings embed embedContent batchEmbedContents moderations rerank speech classify")

func endpointOf(r *http.Request) (e endpoint) {
	path := strings.TrimRight(r.URL.Path, "/")
	e.name = path[strings.LastIndexAny(path, "/:")+1:]
	e.model = modelIn(path)
	e.free = r.Method != http.MethodPost || slices.Contains(freeEnds, e.name) || strings.Contains(path, "/upload/") ||
		strings.Contains(path, "/uploads/") ||
		e.name == "messages" && strings.Contains(path, "/threads/")
	e.silent = slices.Contains(silentEnds, e.name)
	if e.images = strings.Contains(path, "/images/"); e.images {
		e.silent = true // until it tells: gpt-image-1 does
	}
	return e
}

// namesModel finds Azure's, Google's and Bedrock's models, which may be ARNs with slashes.
var namesModel = regexp.MustCompile(`(?s)^.*?/deployments/([^/:]*)|^.*?/models/([^/:]*)` +
	`|^.*?/tunedModels/([^/:]*)|^.*?/endpoints/([^/:]*)|^.*?/model/(.*)/`)

func modelIn(path string) string {
	if m := namesModel.FindStringSubmatch(path); m != nil {
		return strings.Join(m[1:], "")
	}
	return ""
}

var fileTypes = regexp.MustCompile(`^(multipart/|audio/|application/octet-stream)`)

func isFile(r *http.Request) bool { return fileTypes.MatchString(r.Header.Get("Content-Type")) }
