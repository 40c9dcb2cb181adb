variable "profile" {
  description = "Path of the profile file that 'make deploy' wrote."
  type        = string
}

variable "zip" {
  description = "Path of inbound.zip, which 'make functions' builds."
  type        = string
}

variable "token" {
  description = "The operator's token, of 16 characters or more; null to take IndexNow submissions only."
  type        = string
  default     = null
  sensitive   = true
}

variable "url" {
  description = "Access to the function's URL: none (it has no URL); iam (principals with lambda:InvokeFunctionUrl and lambda:InvokeFunction); public (everybody, which IndexNow and hubs need)."
  type        = string
  default     = "none"

  validation {
    condition     = contains(["none", "iam", "public"], var.url)
    error_message = "The URL must be none, iam or public."
  }
}

variable "concurrency" {
  description = "Reserved concurrency, which multiplies the rates that the endpoint allows; -1 for none. An account with a quota of 10 cannot reserve any."
  type        = number
  default     = 1
}

variable "architecture" {
  description = "Architecture of the zip: arm64 or x86_64."
  type        = string
  default     = "arm64"
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of the role; null for none."
  type        = string
  default     = null
}
