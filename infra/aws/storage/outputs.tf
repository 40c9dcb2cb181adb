output "bucket" {
  description = "Name of the bucket."
  value       = aws_s3_bucket.objects.id
}

output "bucket_arn" {
  description = "ARN of the bucket."
  value       = aws_s3_bucket.objects.arn
}

output "table" {
  description = "Name of the table."
  value       = aws_dynamodb_table.records.name
}

output "table_arn" {
  description = "ARN of the table."
  value       = aws_dynamodb_table.records.arn
}
