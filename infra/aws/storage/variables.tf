variable "name" {
  description = "Name of the deployment and of its table."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket."
  type        = string
}

variable "force_destroy" {
  description = "Delete the bucket with its contents when the deployment is destroyed."
  type        = bool
}

variable "deletion_protection" {
  description = "Refuse to delete the table until this is false."
  type        = bool
}

variable "recovery_days" {
  description = "Number of days for which table and bucket can be restored; 0 for no backups."
  type        = number
}

variable "table_backups" {
  description = "Whether the table can have backups, which DynamoDB Local cannot."
  type        = bool
}

variable "kms_key_arn" {
  description = "ARN of the key that encrypts table and bucket; null for the services' own keys."
  type        = string
}

variable "warc_lifecycle" {
  description = "Lifecycle of WARC files, by crawl id."
  type = map(object({
    transition_days = optional(number)
    storage_class   = optional(string, "GLACIER_IR")
    expire_days     = optional(number)
  }))
}
