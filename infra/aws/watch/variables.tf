variable "name" {
  description = "Name of the deployment."
  type        = string
}

variable "alarms" {
  description = "Whether there are alarms; each costs about ten cents a month beyond the first ten of an account."
  type        = bool
}

variable "functions" {
  description = "Functions of the deployment, by role."
  type        = list(string)
}

variable "alarm_email" {
  description = "Address that alarms are sent to, once it has confirmed; empty for none."
  type        = string
}

variable "monthly_budget_usd" {
  description = "Monthly spend, in dollars, that is reported when it is reached; 0 for none."
  type        = number
}

variable "budget_by_tag" {
  description = "Count only what carries this deployment's tag, instead of the whole account."
  type        = bool
}
