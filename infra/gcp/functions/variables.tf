variable "name" {
  description = "Name of the deployment; the names of its services and accounts begin with it."
  type        = string
}

variable "project" {
  description = "Id of the project."
  type        = string
}

variable "region" {
  description = "Region of the services and the schedule."
  type        = string
}

variable "platform" {
  description = "Platform URL of the deployment."
  type        = string
}

variable "service_url" {
  description = "URL of the service NAME-work."
  type        = string
}

variable "image" {
  description = "Image of the services, with its digest."
  type        = string
}

variable "memory_mb" {
  description = "Memory of an instance in MB."
  type        = number
}

variable "cpu" {
  description = "CPUs of an instance."
  type        = number
}

variable "timeout_s" {
  description = "Time limit of a step, in seconds."
  type        = number
}

variable "max_concurrency" {
  description = "Highest number of concurrent steps."
  type        = number
}

variable "index" {
  description = "Allow instances for index and rank steps."
  type        = bool
}

variable "index_concurrency" {
  description = "Highest number of concurrent index steps, and of concurrent rank steps."
  type        = number
}

variable "search_page" {
  description = "Access to the search page: none (no service is created for it), iam or public."
  type        = string
}

variable "search_concurrency" {
  description = "Highest number of concurrent searches."
  type        = number
}

variable "query_memory_mb" {
  description = "Memory of an instance of the search page in MB."
  type        = number
}

variable "query_cpu" {
  description = "CPUs of an instance of the search page."
  type        = number
}

variable "daily_calls" {
  description = "Calls per day after which the coordinator pauses the crawl."
  type        = number
}

variable "allow_net" {
  description = "Private networks that the services may fetch from."
  type        = list(string)
}

variable "bucket" {
  description = "Name of the bucket."
  type        = string
}

variable "tasks" {
  description = "Names of the queues of tasks, by role."
  type        = map(string)
}

variable "mailboxes" {
  description = "Names of the mailboxes."
  type        = list(string)
}

variable "dead_letters" {
  description = "Name of the topic of dead letters."
  type        = string
}
