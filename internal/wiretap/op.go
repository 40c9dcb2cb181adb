package wiretap

import (
	"mime"
	"net/http"
	"net/url"
	"strings"
)

// service returns the service that a request is signed for. Without a signature it is the one
// that the target names, or S3.
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
	case target != "" || isForm(r) || strings.HasPrefix(r.URL.Path, "/_"): // no name of a bucket begins with _
		return "other"
	}
	return "s3"
}

// action returns the name of the API's operation that a request calls.
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

// s3Action returns the operation on an object by method and query. Other operations, except
// for the listing of objects, are not told apart: functions do not use them.
func s3Action(r *http.Request) string {
	q := r.URL.Query()
	has := func(name string) bool { _, ok := q[name]; return ok }
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	switch {
	case key != "":
		return objectAction(r, has)
	case r.Method == http.MethodGet && q.Get("list-type") == "2":
		return "ListObjectsV2"
	}
	return r.Method + "-bucket"
}

func objectAction(r *http.Request, has func(string) bool) string {
	switch r.Method {
	case http.MethodGet:
		return "GetObject"
	case http.MethodHead:
		return "HeadObject"
	case http.MethodPut:
		if has("partNumber") {
			return "UploadPart"
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

// isForm reports whether a request uses the query protocol, with its action in the body.
func isForm(r *http.Request) bool {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return err == nil && t == "application/x-www-form-urlencoded"
}

// short reports whether a name from a request is short enough for the table of counts.
func short(name string) bool { return name != "" && len(name) <= 64 }
