variable "deployment" {
  description = "Name of the deployment whose intake queue is fed."
  type        = string
}

variable "feed" {
  description = "Name of this feed. The rule is called DEPLOYMENT-feed-FEED; the policy of the queue accepts messages from rules of this name."
  type        = string

  validation {
    condition     = can(regex("^[a-z0-9-]{1,24}$", var.feed))
    error_message = "A feed's name is 1 to 24 of a-z, 0-9 and the hyphen."
  }
}

variable "event_bus" {
  description = "Name of the event bus."
  type        = string
  default     = "default"
}

variable "event_pattern" {
  description = "Events to choose, as EventBridge's JSON pattern."
  type        = string
}

variable "url_path" {
  description = "JSON path of one URL, or of a list of URLs, in the event. Every chosen event must have it, so require it in the pattern."
  type        = string
  default     = "$.detail.url"
}

variable "list" {
  description = "Whether url_path names a list of URLs."
  type        = bool
  default     = false
}
