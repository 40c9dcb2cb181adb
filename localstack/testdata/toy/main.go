// Toy is a function that writes an object and an item for each message and each tick.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

type toy struct {
	objects *s3.Client
	items   *dynamodb.Client
}

func main() {
	c, err := config.LoadDefaultConfig(context.Background())
	if err != nil {
		panic(err)
	}
	t := &toy{s3.NewFromConfig(c), dynamodb.NewFromConfig(c)}
	lambda.Start(t.handle)
}

func (t *toy) handle(ctx context.Context, event struct {
	Records []events.SQSMessage
	Time    string
}) error {
	if event.Records == nil {
		return t.write(ctx, "tick/"+event.Time, "")
	}
	for _, r := range event.Records {
		if strings.HasPrefix(r.Body, "slow") && r.Attributes["ApproximateReceiveCount"] == "1" {
			time.Sleep(2 * time.Second)
		}
		if strings.HasPrefix(r.Body, "fail once") && r.Attributes["ApproximateReceiveCount"] == "1" {
			return errors.New("as I was told")
		}
		if err := t.write(ctx, r.Body+"/"+r.MessageId, r.Body); err != nil {
			return err
		}
	}
	return nil
}

func (t *toy) write(ctx context.Context, key, text string) error {
	body, err := json.Marshal(text)
	if err != nil {
		return err
	}
	_, err = t.objects.PutObject(ctx, &s3.PutObjectInput{Bucket: aws.String(os.Getenv("BUCKET")), Key: &key, Body: strings.NewReader(string(body))})
	if err != nil {
		return err
	}
	_, err = t.items.PutItem(ctx, &dynamodb.PutItemInput{TableName: aws.String(os.Getenv("TABLE")), Item: map[string]types.AttributeValue{
		"key": &types.AttributeValueMemberS{Value: key},
	}})
	return err
}
