package main

import "github.com/spf13/cobra"

func newCrawl() *cobra.Command { return &cobra.Command{Use: "crawl"} }
