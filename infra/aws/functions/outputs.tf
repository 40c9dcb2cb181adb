output "names" {
  description = "Names of the functions by role: fetch, coordinate, intake, and with an index also index, rank, query."
  value       = { for k, f in aws_lambda_function.function : k => f.function_name }
}

output "versions" {
  description = "Newest published versions of the functions, by role."
  value       = tomap({ for k, f in aws_lambda_function.function : k => f.version })
}

output "log_groups" {
  description = "Names of the functions' log groups, by role."
  value       = { for k, g in aws_cloudwatch_log_group.function : k => g.name }
}

output "schedule" {
  description = "Group and name of the coordinator's schedule."
  value       = "${aws_scheduler_schedule.tick.group_name}/${aws_scheduler_schedule.tick.name}"
}

output "search_url" {
  description = "URL of the search page; null without one."
  value       = one([for u in aws_lambda_function_url.search : trimsuffix(u.function_url, "/")])
}
