package main

// pricesAsOf is when the list prices below were looked up, for us-east-1 and
// arm64, in US dollars, without taxes and without what is free for an account.
const pricesAsOf = "November 2026"

// A price is for one unit.
type price struct {
	dollars float64
	per     float64
	source  string
}

// of is the price of n units.
func (p price) of(n float64) float64 { return n * p.dollars / p.per }

const million = 1_000_000

var (
	// a month; 2.00 after its first rotation, 3.00 after its second
	priceKey     = price{1.00, 1, "https://aws.amazon.com/kms/pricing/"}
	priceKeyCall = price{0.03, 10_000, "https://aws.amazon.com/kms/pricing/"}
	priceSecret  = price{0.40, 1, "https://aws.amazon.com/secrets-manager/pricing/"}
	// for each metric that it looks at, of a minute or more
	priceAlarm      = price{0.10, 1, "https://aws.amazon.com/cloudwatch/pricing/"}
	priceFastAlarm  = price{0.30, 1, "https://aws.amazon.com/cloudwatch/pricing/"}
	priceMetric     = price{0.30, 1, "https://aws.amazon.com/cloudwatch/pricing/"}
	priceDashboard  = price{3.00, 1, "https://aws.amazon.com/cloudwatch/pricing/"}
	priceLog        = price{0.50, 1e9, "https://aws.amazon.com/cloudwatch/pricing/"} // a byte that is taken in
	priceTrace      = price{5.00, million, "https://aws.amazon.com/xray/pricing/"}
	priceCall       = price{0.20, million, "https://aws.amazon.com/lambda/pricing/"}
	priceGBSecond   = price{0.0000133334, 1, "https://aws.amazon.com/lambda/pricing/"}
	priceRead       = price{0.125, million, "https://aws.amazon.com/dynamodb/pricing/on-demand/"}
	priceWrite      = price{0.625, million, "https://aws.amazon.com/dynamodb/pricing/on-demand/"}
	priceTableGB    = price{0.25 + 0.20, 1, "https://aws.amazon.com/dynamodb/pricing/on-demand/"} // with recovery to any second
	priceTransition = price{0.025, 1000, "https://aws.amazon.com/step-functions/pricing/"}
	priceRequest    = price{3.50, million, "https://aws.amazon.com/api-gateway/pricing/"}
	// of one's own; those of a schedule are not listed
	priceEvent       = price{1.00, million, "https://aws.amazon.com/eventbridge/pricing/"}
	priceS3GB        = price{0.023, 1, "https://aws.amazon.com/s3/pricing/"}
	priceWebACL      = price{5.00, 1, "https://aws.amazon.com/waf/pricing/"}
	priceWebACLRule  = price{1.00, 1, "https://aws.amazon.com/waf/pricing/"}
	priceWebACLAsked = price{0.60, million, "https://aws.amazon.com/waf/pricing/"}
)
