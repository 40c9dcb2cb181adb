# An EventBridge rule that sends a request to the intake queue for each event. An event that
# is delivered twice keeps its id, so it counts once.

data "aws_sqs_queue" "intake" {
  name = "${var.deployment}-intake"
}

resource "aws_cloudwatch_event_rule" "feed" {
  name           = "${var.deployment}-feed-${var.feed}"
  description    = "URLs that Orbweaver revisits"
  event_bus_name = var.event_bus
  event_pattern  = var.event_pattern
}

resource "aws_cloudwatch_event_target" "intake" {
  rule           = aws_cloudwatch_event_rule.feed.name
  event_bus_name = var.event_bus
  arn            = data.aws_sqs_queue.intake.arn

  input_transformer {
    input_paths = {
      id  = "$.id"
      url = var.url_path
    }
    # Not jsonencode: it would escape the angle brackets. EventBridge quotes the values.
    input_template = "{\"recrawl\":${var.list ? "<url>" : "[<url>]"},\"id\":<id>}"
  }
}
