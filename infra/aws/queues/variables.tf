variable "name" {
  description = "Name of the deployment, with which the names of its queues begin."
  type        = string
}

variable "partitions" {
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

variable "bucket" {
  description = "Name of the bucket whose lists of URLs are made requests."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of that bucket."
  type        = string
}
