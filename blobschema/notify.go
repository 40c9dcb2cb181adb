package blobschema

import (
	"encoding/json"
	"net/url"
	"strings"
)

// Folders of a bucket for lists of URLs: one URL per line, # begins a
// comment. The cloud sends a notification of the new object to the intake queue, where it
// becomes a request.
const (
	RecrawlLists = "lists/recrawl/"
	SeedLists    = "lists/seeds/"
)

// Bounds of a list.
const (
	MaxListBytes = 16 << 20
	MaxListURLs  = 100_000
)

// Upload is a new object in a bucket.
type Upload struct {
	Bucket string
	Name   string
	Size   int64
	// ID is the same in all deliveries of one notification, and unique to it.
	ID string
}

// DecodeNotification decodes a notification of S3 or Cloud Storage. ok is false if b is something else. The test notification of S3
// and its notifications of removals name no object. Those of Cloud Storage look like any other of its notifications, so
// only new objects may be configured.
//
// Sources: Amazon S3 User Guide, "Event message structure"; Cloud Storage JSON API, resource "Objects", with
// notifications of the payload format JSON_API_V1.
func DecodeNotification(b []byte) (uploads []Upload, ok bool) {
	var m struct {
		Records []struct {
			Source string `json:"eventSource"`
			Name   string `json:"eventName"`
			S3     struct {
				Bucket struct {
					Name string `json:"name"`
				} `json:"bucket"`
				Object struct {
					Key       string `json:"key"`
					Size      int64  `json:"size"`
					Sequencer string `json:"sequencer"`
				} `json:"object"`
			} `json:"s3"`
		} `json:"Records"`
		Event string `json:"Event"`
	}
	if len(b) > MaxRequestBytes || json.Unmarshal(b, &m) != nil {
		return nil, false
	}
	if m.Event == "s3:TestEvent" {
		return nil, true
	}
	var o struct {
		Kind       string `json:"kind"`
		Bucket     string `json:"bucket"`
		Name       string `json:"name"`
		Generation string `json:"generation"` // unique to this content
		Size       int64  `json:"size,string"`
	}
	if json.Unmarshal(b, &o) == nil && o.Kind == "storage#object" {
		return []Upload{{Bucket: o.Bucket, Name: o.Name, Size: o.Size, ID: "upload " + o.Generation + " " + o.Name}}, true
	}
	for _, r := range m.Records {
		if r.Source != "aws:s3" {
			return nil, false
		}
		if !strings.HasPrefix(r.Name, "ObjectCreated:") {
			continue
		}
		o := r.S3.Object
		if name, err := url.QueryUnescape(o.Key); err == nil { // S3 escapes names in this form
			o.Key = name
		}
		uploads = append(uploads, Upload{Bucket: r.S3.Bucket.Name, Name: o.Key, Size: o.Size, ID: "upload " + o.Sequencer + " " + o.Key})
	}
	return uploads, len(m.Records) > 0
}
