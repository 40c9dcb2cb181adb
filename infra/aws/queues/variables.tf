variable "name" {
  description = "Name of the deployment, with which the names of its queues begin."
  type        = string
}

variable "mailboxes" {
  description = "How many mailboxes there are: the most partitions that a crawl may have."
  type        = number
}

variable "fetch_timeout_s" {
  description = "Longest run of the function that wakes trigger, in seconds."
  type        = number
}

variable "intake_timeout_s" {
  description = "Longest run of the function that requests trigger, in seconds."
  type        = number
}

variable "index" {
  description = "Whether there are queues of index and rank jobs."
  type        = bool
}

variable "index_timeout_s" {
  description = "Longest run of the function that index jobs trigger, in seconds."
  type        = number
}

variable "rank_timeout_s" {
  description = "Longest run of the function that rank jobs trigger, in seconds."
  type        = number
}

variable "bucket" {
  description = "Name of the bucket whose lists of URLs are made requests."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of that bucket."
  type        = string
}

variable "mailbox_visibility_s" {
  description = "How long mail that a step has received stays hidden, in seconds: longer than from one commit to the next, or it is delivered again for nothing; the mail of a step that was killed waits so long."
  type        = number
  default     = 120
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the queues; null for the service's own key."
  type        = string
}
