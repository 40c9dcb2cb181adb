package aws

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go/middleware"
	"gocloud.dev/docstore"
	"gocloud.dev/docstore/awsdynamodb/v2"

	"github.com/orbweaver/orbweaver/platform"
)

// maxItem is the largest item of DynamoDB: names and values, in bytes.
const maxItem = 400 << 10

// restPause is the pause before the driver requests the keys that a batch left out.
const restPause = 20 * time.Millisecond

// errLeftOut says that a batch read nothing: DynamoDB is short of capacity.
var errLeftOut = errors.New("DynamoDB read none of the requested records: it is throttling")

// table is the layer between gocloud's driver and DynamoDB.
type table struct {
	opening     context.Context //nolint:containedctx // gocloud opens without a context
	client      *dynamodb.Client
	description *types.TableDescription
}

// openTable opens the table with consistent reads.
func openTable(ctx context.Context, cfg aws.Config, l Location) (*docstore.Collection, error) {
	t := &table{opening: ctx}
	t.client = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.APIOptions = append(o.APIOptions, func(s *middleware.Stack) error {
			return s.Initialize.Add(middleware.InitializeMiddlewareFunc("orbweaver:table", t.handle), middleware.After)
		})
	})
	c, err := awsdynamodb.OpenCollection(t.client, l.Name, platform.KeyField, "", &awsdynamodb.Options{ConsistentRead: true})
	if err != nil {
		return nil, fmt.Errorf("open table %s in %s: %w", l.Name, l.Region, err)
	}
	if err := checkTable(t.description); err != nil {
		return nil, fmt.Errorf("open table %s in %s: %w", l.Name, l.Region, errors.Join(err, c.Close()))
	}
	return c, nil
}

// checkTable returns an error if a table is not that of a deployment, or is not in use.
func checkTable(d *types.TableDescription) error {
	var keys []string
	for _, k := range d.KeySchema {
		name := aws.ToString(k.AttributeName)
		for _, a := range d.AttributeDefinitions {
			if aws.ToString(a.AttributeName) == name {
				name += " (" + string(a.AttributeType) + ")"
			}
		}
		keys = append(keys, name)
	}
	if got, want := strings.Join(keys, ", "), platform.KeyField+" (S)"; got != want {
		return fmt.Errorf("its key is %s, not %s: it belongs to no deployment, or to one of another version", got, want)
	}
	if s := d.TableStatus; s != types.TableStatusActive && s != types.TableStatusUpdating {
		return fmt.Errorf("it is not in use: its status is %s", s)
	}
	return nil
}

// handle requests the consumed capacity of each call, and adds what gocloud lacks: a context for the
// description, an error for items that are too large, and the keys that a batch left out.
func (t *table) handle(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	const total = types.ReturnConsumedCapacityTotal
	switch p := in.Parameters.(type) {
	case *dynamodb.DescribeTableInput:
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(t.opening, cancel)()
	case *dynamodb.PutItemInput:
		if n := itemSize(p.Item); n > maxItem {
			return middleware.InitializeOutput{}, middleware.Metadata{},
				fmt.Errorf("record %s has %d bytes, and an item of DynamoDB at most %d", keyOf(p.Item), n, maxItem)
		}
		p.ReturnConsumedCapacity = total
	case *dynamodb.BatchGetItemInput:
		p.ReturnConsumedCapacity = total
	}
	out, md, err := next.HandleInitialize(ctx, in)
	if err != nil {
		return out, md, err
	}
	switch r := out.Result.(type) {
	case *dynamodb.DescribeTableOutput:
		t.description = r.Table
	case *dynamodb.BatchGetItemOutput:
		err = t.readRest(ctx, in.Parameters.(*dynamodb.BatchGetItemInput), r)
	}
	return out, md, err
}

// readRest reads the records that a batch left out because it lacked capacity, or room in its answer (16
// MB). gocloud would report them as absent.
func (t *table) readRest(ctx context.Context, in *dynamodb.BatchGetItemInput, r *dynamodb.BatchGetItemOutput) error {
	left := countKeys(r.UnprocessedKeys)
	if left == 0 {
		return nil
	}
	if left >= countKeys(in.RequestItems) {
		return errLeftOut
	}
	select {
	case <-time.After(restPause):
	case <-ctx.Done():
		return ctx.Err()
	}
	rest, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: r.UnprocessedKeys})
	if err != nil {
		return err
	}
	if r.Responses == nil { // nothing was read
		r.Responses = map[string][]map[string]types.AttributeValue{}
	}
	for name, items := range rest.Responses {
		r.Responses[name] = append(r.Responses[name], items...)
	}
	r.UnprocessedKeys = nil
	return nil
}

func countKeys(m map[string]types.KeysAndAttributes) (n int) {
	for _, k := range m {
		n += len(k.Keys)
	}
	return n
}

// itemSize returns the size of an item as DynamoDB counts it ("Item sizes and formats" in its developer
// guide). The attributes of a record are text, or null.
func itemSize(item map[string]types.AttributeValue) (n int) {
	for name, v := range item {
		n += len(name)
		if text, ok := v.(*types.AttributeValueMemberS); ok {
			n += len(text.Value)
		} else {
			n++
		}
	}
	return n
}

// keyOf returns the key of an item.
func keyOf(item map[string]types.AttributeValue) string {
	if k, ok := item[platform.KeyField].(*types.AttributeValueMemberS); ok {
		return k.Value
	}
	return "?"
}
