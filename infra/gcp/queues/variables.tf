variable "name" {
  description = "Name of the deployment; the names of its queues begin with it."
  type        = string
}

variable "region" {
  description = "Region of the queues of tasks."
  type        = string
}

variable "project_number" {
  description = "Number of the project, which the account of Pub/Sub itself is named after."
  type        = string
}

variable "mailboxes" {
  description = "Number of mailboxes, and so the highest possible number of partitions."
  type        = number
}

variable "max_concurrency" {
  description = "Highest number of concurrent steps."
  type        = number
}

variable "index" {
  description = "Create the queues of index and rank jobs."
  type        = bool
}

variable "index_concurrency" {
  description = "Highest number of concurrent index steps, and of concurrent rank steps."
  type        = number
}

variable "service_url" {
  description = "URL of the service that takes requests."
  type        = string
}

variable "invoker" {
  description = "E-mail address of the service account that starts the service."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket whose lists of URLs become requests."
  type        = string
}
