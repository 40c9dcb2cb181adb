package token

import (
	"fmt"
	"testing"
)

func TestX(t *testing.T) {
	for _, c := range [][2]string{{"The crawler's queues don't drop net.ipv4.tcp_rmem C++ C# heading# 1,000.5 foo", "en"},
		{"南京市长江大桥位于江苏省。小明硕士毕业于中国科学院计算所，后在日本京都大学深造。南京市長江大橋位於江蘇省", ""},
		{"東京都の天気とﾊﾞﾅﾅ、食べる コンピュータ", "ja"}, {"한국어를 공부합니다 LG전자", "ko"}, {"L'école Straße Ærø żółw", "fr"}, {"ภาษาไทย", "th"}} {
		fmt.Println(Append(nil, c[0], c[1]))
		for _, w := range Query(c[0], []string{"en", "de", "fr"}) {
			fmt.Print(w.Text, w.Position, w.Alternatives, "; ")
		}
		fmt.Println()
	}
}
