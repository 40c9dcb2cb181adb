package wiretap

import (
	"net/http"
	"strings"
)

// service returns the service that a request is signed for, or "other" if it is not signed.
func service(r *http.Request) string {
	_, credential, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	credential, _, _ = strings.Cut(credential, ",")
	if scope := strings.Split(credential, "/"); len(scope) == 5 { // ACCESSKEY/DATE/REGION/SERVICE/aws4_request
		return scope[3]
	}
	return "other"
}

// action returns the name of the API's operation that a request calls.
func action(service string, r *http.Request) string {
	if _, name, ok := strings.Cut(r.Header.Get("X-Amz-Target"), "."); ok {
		return name
	}
	if service == "s3" {
		return s3Action(r)
	}
	return r.Method
}

// s3Action returns the operation on an object by its method. It distinguishes no other operations except the
// listing of objects, because functions do not use them.
func s3Action(r *http.Request) string {
	_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "/")
	name := map[string]string{http.MethodGet: "GetObject", http.MethodHead: "HeadObject", http.MethodPut: "PutObject", http.MethodDelete: "DeleteObject"}[r.Method]
	switch {
	case key != "" && name != "":
		return name
	case r.Method == http.MethodGet && r.URL.Query().Get("list-type") == "2":
		return "ListObjectsV2"
	}
	return r.Method + "-bucket"
}
