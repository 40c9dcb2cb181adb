variable "name" {
  description = "Name of the deployment, which is also the table's."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket."
  type        = string
}

variable "force_destroy" {
  description = "Delete the bucket with all that is in it when the deployment is destroyed."
  type        = bool
}

variable "deletion_protection" {
  description = "Refuse to delete the table until this is false."
  type        = bool
}

variable "point_in_time_recovery" {
  description = "Keep continuous backups of the table, 35 days back; they are billed by size."
  type        = bool
}

variable "warc_lifecycle" {
  description = "What becomes of the WARC files of crawls, by crawl id."
  type = map(object({
    transition_days = optional(number)
    storage_class   = optional(string, "GLACIER_IR")
    expire_days     = optional(number)
  }))
}
