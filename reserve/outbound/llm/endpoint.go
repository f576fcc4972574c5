package llm

import (
	"net/http"
	"regexp"
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
var freeEnds = map[string]bool{
	"batches": true, "batchPredictionJobs": true, "batchGenerateContent": true, "asyncBatchEmbedContent": true,
	"files": true, "uploads": true, "upload": true, "blobs": true, "cancel": true,
	"count_tokens": true, "countTokens": true, "computeTokens": true, "count-tokens": true, "input_tokens": true,
	"tokenize": true, "detokenize": true, "models": true, "jobs": true, "vector_stores": true, "file_batches": true,
	"search": true, "assistants": true, "threads": true, "conversations": true, "items": true, "evals": true,
	"cachedContents": true, "tunedModels": true, "containers": true, "sessions": true, "client_secrets": true,
	"pull": true, "push": true, "create": true, "copy": true, "show": true, "delete": true,
}

var silentEnds = map[string]bool{
	"embeddings": true, "embed": true, "embedContent": true, "batchEmbedContents": true, "moderations": true,
	"rerank": true, "speech": true, "classify": true,
}

func endpointOf(r *http.Request) (e endpoint) {
	path := strings.TrimRight(r.URL.Path, "/")
	e.name = path[strings.LastIndexAny(path, "/:")+1:]
	e.model = modelIn(path)
	e.free = r.Method != http.MethodPost || freeEnds[e.name] || strings.Contains(path, "/upload/") ||
		strings.Contains(path, "/uploads/") ||
		e.name == "messages" && strings.Contains(path, "/threads/")
	e.silent = silentEnds[e.name]
	if e.images = strings.Contains(path, "/images/"); e.images {
		e.silent = true // until it tells: gpt-image-1 does
	}
	if e.name == e.model { // of a server whose path ends with the model's name
		e.name = ""
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
