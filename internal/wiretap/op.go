package wiretap

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// service is the one that a request is signed for; without a signature, the one that its
// target names, or S3.
func service(r *http.Request) string {
	credential := r.URL.Query().Get("X-Amz-Credential")
	if _, after, ok := strings.Cut(r.Header.Get("Authorization"), "Credential="); ok {
		credential, _, _ = strings.Cut(after, ",")
	}
	// ACCESSKEY/DATE/REGION/SERVICE/aws4_request
	if scope := strings.Split(credential, "/"); len(scope) == 5 && short(scope[3]) {
		return scope[3]
	}
	target := r.Header.Get("X-Amz-Target")
	switch {
	case strings.HasPrefix(target, "AmazonSQS."):
		return "sqs"
	case strings.HasPrefix(target, "DynamoDB_"):
		return "dynamodb"
	case target != "" || isForm(r) || strings.HasPrefix(r.URL.Path, "/_"): // no bucket begins like that
		return "other"
	}
	return "s3"
}

// action is the name of the API's operation that a request calls.
func action(service string, r *http.Request, body []byte) string {
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok && short(name) {
		return name
	}
	if isForm(r) {
		if form, err := url.ParseQuery(string(body)); err == nil && short(form.Get("Action")) {
			return form.Get("Action")
		}
	}
	if service == "s3" {
		return s3Action(r)
	}
	return r.Method
}

// s3Action tells S3's operations apart by method, path (/BUCKET/KEY) and query. Those on
// a bucket's settings go by the setting's name.
func s3Action(r *http.Request) string {
	q := r.URL.Query()
	has := func(name string) bool { _, ok := q[name]; return ok }
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	if key != "" {
		return objectAction(r, has)
	}
	if bucket == "" {
		return "ListBuckets"
	}
	for _, setting := range []string{"acl", "encryption", "lifecycle", "location", "notification", "object-lock", "ownershipControls",
		"policy", "publicAccessBlock", "tagging", "versioning", "website", "uploads", "versions"} {
		if has(setting) {
			return r.Method + "-" + setting
		}
	}
	switch r.Method {
	case http.MethodGet:
		if q.Get("list-type") == "2" {
			return "ListObjectsV2"
		}
		return "ListObjects"
	case http.MethodHead:
		return "HeadBucket"
	case http.MethodPut:
		return "CreateBucket"
	case http.MethodDelete:
		return "DeleteBucket"
	case http.MethodPost:
		if has("delete") {
			return "DeleteObjects"
		}
	}
	return r.Method
}

func objectAction(r *http.Request, has func(string) bool) string {
	switch r.Method {
	case http.MethodGet:
		switch {
		case has("uploadId"):
			return "ListParts"
		case has("tagging"):
			return "GetObjectTagging"
		}
		return "GetObject"
	case http.MethodHead:
		return "HeadObject"
	case http.MethodPut:
		copied := r.Header.Get("X-Amz-Copy-Source") != ""
		switch {
		case has("partNumber") && copied:
			return "UploadPartCopy"
		case has("partNumber"):
			return "UploadPart"
		case copied:
			return "CopyObject"
		case has("tagging"):
			return "PutObjectTagging"
		}
		return "PutObject"
	case http.MethodPost:
		switch {
		case has("uploads"):
			return "CreateMultipartUpload"
		case has("uploadId"):
			return "CompleteMultipartUpload"
		}
	case http.MethodDelete:
		if has("uploadId") {
			return "AbortMultipartUpload"
		}
		return "DeleteObject"
	}
	return r.Method
}

// isForm says whether a request is of the query protocol, with its action in the body.
func isForm(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/x-www-form-urlencoded"
}

// short keeps what a client makes up out of the table of counts.
func short(name string) bool { return name != "" && len(name) <= 64 }
