package text

func language(title, body, told string) string { return "" }
