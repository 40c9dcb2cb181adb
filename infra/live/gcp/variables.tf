variable "name" {
  description = "Name of the deployment and of its collection of records; all other names begin with it."
  type        = string
  default     = "orbweaver"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,21}[a-z0-9]$", var.name)) && !startswith(var.name, "goog")
    error_message = "The name must be 3 to 23 of a-z, 0-9 and the hyphen, begin with a letter but not with goog, and not end with a hyphen."
  }
}

variable "project" {
  description = "Id of the project."
  type        = string
}

variable "region" {
  description = "Region of all resources."
  type        = string
}

variable "labels" {
  description = "Labels of all resources that can have labels, in addition to orbweaver = NAME."
  type        = map(string)
  default     = {}
}

variable "bucket" {
  description = "Name of the bucket; by default NAME-NUMBER-REGION with the number of the project."
  type        = string
  default     = null
}

variable "create_database" {
  description = "Create the project's default Firestore database. False if it exists; it must be in native mode."
  type        = bool
  default     = false
}

variable "image" {
  description = "Image of the services, with its digest. 'make deploy' builds it and sets this."
  type        = string
}

variable "partitions" {
  description = "Number of partitions of a new crawl, unless --partitions is given."
  type        = number
  default     = 16

  validation {
    condition     = var.partitions >= 1 && var.partitions <= 1000 && floor(var.partitions) == var.partitions
    error_message = "There must be 1 to 1000 partitions."
  }
}

variable "mailboxes" {
  description = "Number of mailboxes, and so the highest possible number of partitions; by default twice the number of partitions, at least 32. More mailboxes cost nothing. Reducing the number deletes mailboxes with their messages."
  type        = number
  default     = null

  validation {
    condition     = var.mailboxes == null ? true : var.mailboxes >= 1 && var.mailboxes <= 4096 && floor(var.mailboxes) == var.mailboxes
    error_message = "There must be 1 to 4096 mailboxes."
  }
}

variable "memory_mb" {
  description = "Memory of an instance in MB. Steps, coordinator, index and ranks share the service; a rank step holds the links of one partition."
  type        = number
  default     = 512

  validation {
    condition     = var.memory_mb >= 256 && var.memory_mb <= 10240 && floor(var.memory_mb) == var.memory_mb
    error_message = "The memory must be 256 to 10240 MB."
  }
}

variable "cpu" {
  description = "CPUs of an instance: 0.08 to 1, or 2, 4, 6 or 8. By default as many as AWS Lambda gives for the memory (1,769 MB are one CPU), and at least what Cloud Run requires: half a CPU above 512 MB, one above 1024 MB."
  type        = number
  default     = null

  validation {
    condition     = var.cpu == null ? true : var.cpu >= 0.08 && var.cpu <= 1 || contains([2, 4, 6, 8], var.cpu)
    error_message = "The number of CPUs must be 0.08 to 1, or 2, 4, 6 or 8."
  }
}

variable "timeout_s" {
  description = "Time limit of a step, in seconds. Longer steps spread the cost of starting over more pages."
  type        = number
  default     = 300

  validation {
    condition     = var.timeout_s >= 60 && var.timeout_s <= 1800 && floor(var.timeout_s) == var.timeout_s
    error_message = "The time limit must be 60 to 1800 s."
  }
}

variable "max_concurrency" {
  description = "Highest number of concurrent steps; a value above the number of partitions has no effect."
  type        = number
  default     = 8

  validation {
    condition     = var.max_concurrency >= 1 && var.max_concurrency <= 1000 && floor(var.max_concurrency) == var.max_concurrency
    error_message = "The concurrency must be 1 to 1000."
  }
}

variable "index" {
  description = "Create the queues of index and rank jobs, so that crawls can be made searchable. They cost nothing while unused."
  type        = bool
  default     = true
}

variable "index_concurrency" {
  description = "Highest number of concurrent index steps, and of concurrent rank steps; see max_concurrency."
  type        = number
  default     = 2

  validation {
    condition     = var.index_concurrency >= 1 && var.index_concurrency <= 1000 && floor(var.index_concurrency) == var.index_concurrency
    error_message = "The concurrency must be 1 to 1000."
  }
}

variable "query_memory_mb" {
  description = "Memory of an instance of the search page in MB; most of it caches parts of the index. More memory also answers faster."
  type        = number
  default     = 1024

  validation {
    condition     = var.query_memory_mb >= 256 && var.query_memory_mb <= 10240 && floor(var.query_memory_mb) == var.query_memory_mb
    error_message = "The memory must be 256 to 10240 MB."
  }
}

variable "search_page" {
  description = "Access to the search page: none (there is no service for it); iam (principals with roles/run.invoker on the service NAME-search); public (everybody, and you pay for their queries)."
  type        = string
  default     = "none"

  validation {
    condition     = contains(["none", "iam", "public"], var.search_page)
    error_message = "The search page must be none, iam or public."
  }
}

variable "search_concurrency" {
  description = "Highest number of concurrent searches, which bounds their cost."
  type        = number
  default     = 10

  validation {
    condition     = var.search_concurrency >= 1 && var.search_concurrency <= 1000 && floor(var.search_concurrency) == var.search_concurrency
    error_message = "The concurrency must be 1 to 1000."
  }
}

variable "force_destroy" {
  description = "Delete the bucket with all its pages when the deployment is destroyed. Otherwise a bucket that is not empty stays."
  type        = bool
  default     = false
}

variable "allow_net" {
  description = "Private networks (CIDR) that the services may fetch from. For tests only: a deployed crawler must not reach networks that are not public."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for n in var.allow_net : can(cidrhost(n, 0))])
    error_message = "Networks must be written as ADDRESS/BITS."
  }
}

variable "daily_calls" {
  description = "Calls per day after which the coordinator pauses the crawl and says why. It guards against steps that start each other forever. Default: 15,000 per mailbox, one step every six seconds."
  type        = number
  default     = null

  validation {
    condition     = var.daily_calls == null ? true : var.daily_calls >= 1000 && floor(var.daily_calls) == var.daily_calls
    error_message = "The daily limit must be a whole number of at least 1000 calls: the coordinator alone needs 1440."
  }
}

variable "settings" {
  description = "Text of NAME.tfvars, kept with the state. 'make deploy' sets it."
  type        = string
  default     = ""
}
