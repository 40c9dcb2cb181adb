variable "name" {
  description = "Name of the deployment and of its collection of records."
  type        = string
}

variable "region" {
  description = "Region of the bucket, and of a database that is created."
  type        = string
}

variable "bucket" {
  description = "Name of the bucket."
  type        = string
}

variable "create_database" {
  description = "Create the project's default database; false if it exists."
  type        = bool
}

variable "force_destroy" {
  description = "Delete the bucket with its contents when the deployment is destroyed."
  type        = bool
}
