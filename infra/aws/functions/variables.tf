variable "name" {
  description = "Name of the deployment, with which the names of its functions begin."
  type        = string
}

variable "platform" {
  description = "URL by which a program finds the deployment."
  type        = string
}

variable "zips" {
  description = "Folder of the functions' zips: fetch.zip, coordinate.zip, intake.zip, index.zip, rank.zip and query.zip."
  type        = string
}

variable "architecture" {
  description = "What the zips were built for: arm64 or x86_64."
  type        = string
}

variable "memory_mb" {
  description = "Memory of the fetch function, which is also its share of a CPU (1,769 MB are one)."
  type        = number
}

variable "fetch_timeout_s" {
  description = "Longest run of the fetch function, in seconds."
  type        = number
}

variable "intake_timeout_s" {
  description = "Longest run of the intake function, in seconds."
  type        = number
}

variable "max_concurrency" {
  description = "Most steps that run at a time."
  type        = number
}

variable "intake_concurrency" {
  description = "Most intake calls that run at a time."
  type        = number
}

variable "index" {
  description = "Whether there are the functions index, rank and query."
  type        = bool
}

variable "index_memory_mb" {
  description = "Memory of the index function."
  type        = number
}

variable "rank_memory_mb" {
  description = "Memory of the rank function."
  type        = number
}

variable "query_memory_mb" {
  description = "Memory of the query function, most of which caches pieces of the index."
  type        = number
}

variable "index_timeout_s" {
  description = "Longest run of the index function, in seconds."
  type        = number
}

variable "rank_timeout_s" {
  description = "Longest run of the rank function, in seconds."
  type        = number
}

variable "index_concurrency" {
  description = "Most index steps that run at a time, and most rank steps."
  type        = number
}

variable "search_page" {
  description = "Access to the search page: none (it has no address), iam or public."
  type        = string
}

variable "search_concurrency" {
  description = "Most queries that run at a time, set aside for them; -1 for what the account has left."
  type        = number
}

variable "log_retention_days" {
  description = "How long logs are kept, in days."
  type        = number
}

variable "allow_net" {
  description = "Networks that may be fetched from though they are not public."
  type        = list(string)
}

variable "emulated" {
  description = "Leave out what emulators lack."
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
  description = "Function calls of a day after which the coordinator pauses the crawl."
  type        = number
}

variable "permissions_boundary" {
  description = "ARN of the policy that bounds the rights of all roles; null for none."
  type        = string
}

variable "vpc" {
  description = "Subnets and security groups of the functions; null for functions outside of any VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts the environment of the functions, and what they read and write; null for the services' own keys."
  type        = string
}
