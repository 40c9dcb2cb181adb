variable "name" {
  description = "Name of the deployment."
  type        = string
}

variable "alarms" {
  description = "Create alarms; each costs about ten cents a month beyond the first ten of an account."
  type        = bool
}

variable "metrics" {
  description = "Create a dashboard, and alarms on the figures that functions write as embedded metrics."
  type        = bool
}

variable "daily_cost_usd" {
  description = "Dollars a day, at list prices, above which an alarm is raised; 0 for no such alarm."
  type        = number
}

variable "functions" {
  description = "Functions of the deployment, by role."
  type        = list(string)
}

variable "alarm_email" {
  description = "E-mail address for alarms; it must confirm first. Empty for none."
  type        = string
}

variable "monthly_budget_usd" {
  description = "Monthly budget in dollars; reaching it is reported. 0 for no budget."
  type        = number
}

variable "budget_by_tag" {
  description = "Count only the cost of resources with this deployment's tag, not of the whole account."
  type        = bool
}
