variable "name" {
  description = "Name of the deployment and of its table; all other names begin with it."
  type        = string
  default     = "orbweaver"

  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,28}[a-z0-9]$", var.name))
    error_message = "The name must be 3 to 30 of a-z, 0-9 and the hyphen, begin with a letter and not end with a hyphen."
  }
}

variable "region" {
  description = "AWS region; by default that of the environment or profile."
  type        = string
  default     = null
}

variable "tags" {
  description = "Tags of all resources that can have tags, in addition to orbweaver = NAME."
  type        = map(string)
  default     = {}
}

variable "bucket" {
  description = "Name of the bucket; by default NAME-ACCOUNT-REGION."
  type        = string
  default     = null
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
  description = "Memory of the fetch function in MB; its share of a CPU grows with it (1,769 MB are one CPU)."
  type        = number
  default     = 512

  validation {
    condition     = var.memory_mb >= 256 && var.memory_mb <= 10240 && floor(var.memory_mb) == var.memory_mb
    error_message = "The memory must be 256 to 10240 MB."
  }
}

variable "timeout_s" {
  description = "Timeout of a step, in seconds. Longer steps spread the cost of starting over more pages."
  type        = number
  default     = 300

  validation {
    condition     = var.timeout_s >= 60 && var.timeout_s <= 900 && floor(var.timeout_s) == var.timeout_s
    error_message = "The timeout must be 60 to 900 s."
  }
}

variable "max_concurrency" {
  description = "Highest number of concurrent steps; a value above the number of partitions has no effect. If the account's quota is too small, a lower number is used, with a warning."
  type        = number
  default     = 8

  validation {
    condition     = var.max_concurrency >= 2 && var.max_concurrency <= 1000 && floor(var.max_concurrency) == var.max_concurrency
    error_message = "The concurrency of an event source mapping must be 2 to 1000."
  }
}

variable "concurrency_quota" {
  description = "Concurrent function calls that this deployment may use; by default the quota of the account."
  type        = number
  default     = null

  validation {
    condition     = var.concurrency_quota == null ? true : var.concurrency_quota >= 1 && floor(var.concurrency_quota) == var.concurrency_quota
    error_message = "The quota must be a whole number from 1 on."
  }
}

variable "mailbox_visibility_s" {
  description = "Visibility timeout of received mail, in seconds; steps commit once a minute."
  type        = number
  default     = 120

  validation {
    condition     = var.mailbox_visibility_s >= 1 && var.mailbox_visibility_s <= 43200 && floor(var.mailbox_visibility_s) == var.mailbox_visibility_s
    error_message = "The visibility must be 1 to 43200 s."
  }
}

variable "index" {
  description = "Create the queues and functions for index, ranks and queries, so that crawls can be made searchable. While unused they cost only the polling of their queues."
  type        = bool
  default     = true
}

variable "index_memory_mb" {
  description = "Memory of the index function in MB; its share of a CPU grows with it (1,769 MB are one CPU)."
  type        = number
  default     = 1024

  validation {
    condition     = var.index_memory_mb >= 512 && var.index_memory_mb <= 10240 && floor(var.index_memory_mb) == var.index_memory_mb
    error_message = "The memory must be 512 to 10240 MB."
  }
}

variable "rank_memory_mb" {
  description = "Memory of the rank function, in MB; it holds the links of one partition."
  type        = number
  default     = 1024

  validation {
    condition     = var.rank_memory_mb >= 512 && var.rank_memory_mb <= 10240 && floor(var.rank_memory_mb) == var.rank_memory_mb
    error_message = "The memory must be 512 to 10240 MB."
  }
}

variable "query_memory_mb" {
  description = "Memory of the query function in MB; most of it caches parts of the index. More memory also answers faster."
  type        = number
  default     = 1024

  validation {
    condition     = var.query_memory_mb >= 256 && var.query_memory_mb <= 10240 && floor(var.query_memory_mb) == var.query_memory_mb
    error_message = "The memory must be 256 to 10240 MB."
  }
}

variable "index_concurrency" {
  description = "Highest number of concurrent index steps, and of concurrent rank steps; see max_concurrency."
  type        = number
  default     = 2

  validation {
    condition     = var.index_concurrency >= 2 && var.index_concurrency <= 1000 && floor(var.index_concurrency) == var.index_concurrency
    error_message = "The concurrency of an event source mapping must be 2 to 1000."
  }
}

variable "search_page" {
  description = "Access to the search page: none (it has no URL); iam (principals with lambda:InvokeFunctionUrl and lambda:InvokeFunction on the function query); public (everybody, and you pay for their queries)."
  type        = string
  default     = "none"

  validation {
    condition     = contains(["none", "iam", "public"], var.search_page)
    error_message = "The search page must be none, iam or public."
  }
}

variable "search_concurrency" {
  description = "Reserved concurrency of queries; -1 for none, so that queries share the rest of the account's quota. Set it if the page is public. An account with a quota of 10 cannot reserve any."
  type        = number
  default     = -1

  validation {
    condition     = var.search_concurrency == -1 || var.search_concurrency >= 1 && var.search_concurrency <= 1000 && floor(var.search_concurrency) == var.search_concurrency
    error_message = "The concurrency must be 1 to 1000, or -1."
  }
}

variable "architecture" {
  description = "Architecture of the functions: arm64, which is a fifth cheaper, or x86_64."
  type        = string
  default     = "arm64"

  validation {
    condition     = contains(["arm64", "x86_64"], var.architecture)
    error_message = "The architecture must be arm64 or x86_64."
  }
}

variable "zips" {
  description = "Folder of the functions' zips; by default bin/functions, where 'make functions' puts them."
  type        = string
  default     = null
}

variable "log_retention_days" {
  description = "Days for which logs are kept."
  type        = number
  default     = 14

  validation {
    condition     = contains([1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653], var.log_retention_days)
    error_message = "CloudWatch keeps logs for 1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731 days, or for 3, 5 to 10 years (1096, 1827, 2192, 2557, 2922, 3288, 3653)."
  }
}

variable "recovery_days" {
  description = "Number of days for which 'make restore' can restore: the table has continuous backups, and the bucket keeps deleted objects. 0 for neither."
  type        = number
  default     = 7

  validation {
    condition     = var.recovery_days >= 0 && var.recovery_days <= 35 && floor(var.recovery_days) == var.recovery_days
    error_message = "The days must be 0 to 35."
  }
}

variable "permissions_boundary" {
  description = "ARN of the permissions boundary of all roles, if the account requires one."
  type        = string
  default     = null
}

variable "vpc" {
  description = "Subnets and security groups of the functions. The subnets must reach the Internet and, through NAT or endpoints, SQS, DynamoDB and S3. By default functions run outside any VPC."
  type = object({
    subnet_ids         = list(string)
    security_group_ids = list(string)
  })
  default = null

  validation {
    condition     = var.vpc == null ? true : length(var.vpc.subnet_ids) > 0 && length(var.vpc.security_group_ids) > 0
    error_message = "A VPC needs at least one subnet and one security group."
  }
}

variable "kms_key_arn" {
  description = "ARN of the KMS key that encrypts table, bucket, queues and the functions' environment. Its policy must allow S3 and EventBridge. By default the services' own keys are used."
  type        = string
  default     = null

  validation {
    condition     = var.kms_key_arn == null ? true : can(regex("^arn:[a-z-]+:kms:.+:key/", var.kms_key_arn))
    error_message = "The key must be the ARN of a key, arn:aws:kms:REGION:ACCOUNT:key/ID, not an alias."
  }
}

variable "deletion_protection" {
  description = "Refuse to delete the table until this is false."
  type        = bool
  default     = true
}

variable "force_destroy" {
  description = "Delete the bucket with all its pages when the deployment is destroyed. Otherwise a bucket that is not empty stays."
  type        = bool
  default     = false
}

variable "warc_lifecycle" {
  description = "Lifecycle of WARC files, by crawl id: days after which they move to another storage class (one with immediate access) or are deleted. Without an entry they stay."
  type = map(object({
    transition_days = optional(number)
    storage_class   = optional(string, "GLACIER_IR")
    expire_days     = optional(number)
  }))
  default = {}

  validation {
    condition     = alltrue([for k, _ in var.warc_lifecycle : can(regex("^[a-z0-9-]{1,32}$", k))])
    error_message = "A crawl id is 1 to 32 of a-z, 0-9 and the hyphen."
  }
  validation {
    condition     = alltrue([for _, v in var.warc_lifecycle : contains(["STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"], v.storage_class)])
    error_message = "The class must be STANDARD_IA, ONEZONE_IA, INTELLIGENT_TIERING or GLACIER_IR: others cannot be read at once."
  }
  validation {
    condition     = alltrue([for _, v in var.warc_lifecycle : v.transition_days != null || v.expire_days != null])
    error_message = "An entry needs transition_days, expire_days or both."
  }
}

variable "alarms" {
  description = "Create alarms: 12, or 20 with an index. The first ten of an account are free."
  type        = bool
  default     = true
}

variable "metrics" {
  description = "Functions write ten figures as embedded metrics, and there are a dashboard and alarms on them. The first ten metrics and three dashboards of an account are free; beyond them it costs about $7 a month."
  type        = bool
  default     = false
}

variable "daily_cost_usd" {
  description = "Dollars a day, at list prices, above which an alarm is raised if there are metrics; 0 for no such alarm."
  type        = number
  default     = 5

  validation {
    condition     = var.daily_cost_usd >= 0
    error_message = "This is no number of dollars."
  }
}

variable "alarm_email" {
  description = "E-mail address for alarms and the budget; it must confirm first. Empty for none."
  type        = string
  default     = ""

  validation {
    condition     = can(regex("^([^@ ]+@[^@ ]+)?$", var.alarm_email))
    error_message = "This is no e-mail address."
  }
}

variable "monthly_budget_usd" {
  description = "Monthly budget in dollars: 80 % spent or 100 % forecast is reported; nothing is stopped. 0 for no budget."
  type        = number
  default     = 0

  validation {
    condition     = var.monthly_budget_usd >= 0
    error_message = "The budget must be 0 or more dollars."
  }
}

variable "budget_by_tag" {
  description = "Let the budget count only resources tagged orbweaver = NAME, not the whole account. Activate the tag for cost allocation first."
  type        = bool
  default     = false
}

variable "releases" {
  description = "Previously deployed versions of the functions, newest first. 'make deploy' sets it from the output of the same name."
  type        = list(map(string))
  default     = []
}

variable "settings" {
  description = "Text of NAME.tfvars, kept with the state. 'make deploy' sets it."
  type        = string
  default     = ""
}

variable "emulated" {
  description = "Use emulators: credentials are not checked, bucket names are in the path, and features that emulators lack are left out. AWS_ENDPOINT_URL and similar variables name their addresses."
  type        = bool
  default     = false
}

variable "allow_net" {
  description = "Private networks (CIDR) that functions may fetch from. For tests with emulators only."
  type        = list(string)
  default     = []

  validation {
    condition     = alltrue([for n in var.allow_net : can(cidrhost(n, 0))])
    error_message = "Networks must be written as ADDRESS/BITS."
  }
}

variable "daily_calls" {
  description = "Function calls per day after which the coordinator pauses the crawl and says why. It guards against functions that call each other forever. Default: 15,000 per mailbox, one step every six seconds."
  type        = number
  default     = null

  validation {
    condition     = var.daily_calls == null ? true : var.daily_calls >= 1000 && floor(var.daily_calls) == var.daily_calls
    error_message = "The daily limit must be a whole number of at least 1000 calls: the coordinator alone needs 1440."
  }
}
