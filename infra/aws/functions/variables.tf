variable "name" {
  description = "Name of the deployment; the names of its functions begin with it."
  type        = string
}

variable "platform" {
  description = "Platform URL of the deployment."
  type        = string
}

variable "zips" {
  description = "Folder of the functions' zips: fetch.zip, coordinate.zip, intake.zip, index.zip, rank.zip and query.zip."
  type        = string
}

variable "architecture" {
  description = "Architecture of the zips: arm64 or x86_64."
  type        = string
}

variable "memory_mb" {
  description = "Memory of the fetch function in MB; its share of a CPU grows with it (1,769 MB are one CPU)."
  type        = number
}

variable "fetch_timeout_s" {
  description = "Timeout of the fetch function, in seconds."
  type        = number
}

variable "intake_timeout_s" {
  description = "Timeout of the intake function, in seconds."
  type        = number
}

variable "max_concurrency" {
  description = "Highest number of concurrent steps."
  type        = number
}

variable "intake_concurrency" {
  description = "Highest number of concurrent intake calls."
  type        = number
}

variable "index" {
  description = "Create the functions index, rank and query."
  type        = bool
}

variable "index_memory_mb" {
  description = "Memory of the index function, in MB."
  type        = number
}

variable "rank_memory_mb" {
  description = "Memory of the rank function, in MB."
  type        = number
}

variable "query_memory_mb" {
  description = "Memory of the query function in MB; most of it caches parts of the index."
  type        = number
}

variable "index_timeout_s" {
  description = "Timeout of the index function, in seconds."
  type        = number
}

variable "rank_timeout_s" {
  description = "Timeout of the rank function, in seconds."
  type        = number
}

variable "index_concurrency" {
  description = "Highest number of concurrent index steps, and of concurrent rank steps."
  type        = number
}

variable "search_page" {
  description = "Access to the search page: none (it has no address), iam or public."
  type        = string
}

variable "search_concurrency" {
  description = "Reserved concurrency of queries; -1 for none, so that queries share the rest of the account's quota."
  type        = number
}

variable "log_retention_days" {
  description = "Days for which logs are kept."
  type        = number
}

variable "allow_net" {
  description = "Private networks that functions may fetch from."
  type        = list(string)
}

variable "emulated" {
  description = "Leave out features that emulators lack."
  type        = bool
  default     = false
}

variable "table_arn" {
  description = "ARN of the table."
  type        = string
}

variable "bucket_arn" {
  description = "ARN of the bucket."
  type        = string
}

variable "wakes_arn" {
  description = "ARN of the wakes queue."
  type        = string
}

variable "intake_arn" {
  description = "ARN of the intake queue."
  type        = string
}

variable "jobs_arns" {
  description = "ARNs of the queues index and rank, by those names; none without an index."
  type        = map(string)
}

variable "daily_calls" {
  description = "Function calls per day after which the coordinator pauses the crawl."
  type        = number
}

variable "metrics" {
  description = "Write figures of the crawl as embedded metrics of CloudWatch."
  type        = bool
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of all roles; null for none."
  type        = string
}

variable "vpc" {
  description = "Subnets and security groups of the functions; null to run outside any VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the functions' environment and data; null for the services' own keys."
  type        = string
}
