variable "name" {
  description = "Name of the deployment; the names of its queues begin with it."
  type        = string
}

variable "mailboxes" {
  description = "Number of mailboxes, and so the highest possible number of partitions."
  type        = number
}

variable "fetch_timeout_s" {
  description = "Timeout of the function that wakes trigger, in seconds."
  type        = number
}

variable "intake_timeout_s" {
  description = "Timeout of the function that requests trigger, in seconds."
  type        = number
}

variable "index" {
  description = "Create the queues of index and rank jobs."
  type        = bool
}

variable "index_timeout_s" {
  description = "Timeout of the function that index jobs trigger, in seconds."
  type        = number
}

variable "rank_timeout_s" {
  description = "Timeout of the function that rank jobs trigger, in seconds."
  type        = number
}

variable "bucket" {
  description = "Name of the bucket whose lists of URLs become requests."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of that bucket."
  type        = string
}

variable "mailbox_visibility_s" {
  description = "Visibility timeout of received mail, in seconds. It must be longer than the time between two commits; otherwise mail is delivered twice. After a step was killed, its mail waits this long."
  type        = number
  default     = 120
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the queues; null for the service's own key."
  type        = string
}
