package corpus

import "strings"

// english lists common English words, the most common first.
var english = strings.Fields(`the of and to a in is it that was for on are with as be this have from or one had by
but not what all were when we there can an your which their said if do will each about how up out them then she many some
so these would other into has more two like him see time could no make than first been its who now people my made over did
down only way find use may water long little very after words called just where most know get through back much before go good
new write our used me man too any day same right look think also around another came come work three word must because does part`)

// chinese lists Chinese words. Titles use the first 192, see [Corpus.Title].
var chinese = strings.Fields(`城市 历史 文化 教育 科学 技术 经济 社会 政府 企业 市场 产品 服务 管理 发展 研究 分析 系统 网络 信息 数据 软件 硬件 工程 设计 建筑
环境 能源 交通 铁路 公路 机场 港口 海洋 河流 湖泊 山脉 森林 草原 沙漠 农业 工业 商业 金融 银行 保险 证券 投资 贸易 进口 出口 价格 成本 利润 税收 法律 法院 警察
军队 国家 民族 语言 文字 文学 小说 诗歌 散文 戏剧 电影 电视 广播 报纸 杂志 图书 音乐 舞蹈 绘画 雕塑 摄影 艺术 体育 足球 篮球 排球 网球 游泳 田径 体操 健康 医院
医生 护士 药物 疾病 治疗 手术 心脏 大脑 血液 细胞 基因 蛋白 病毒 细菌 动物 植物 昆虫 鸟类 鱼类 水果 蔬菜 粮食 饮食 茶叶 咖啡 牛奶 面包 米饭 服装 家具 房屋 学校
大学 学生 教师 课程 考试 知识 数学 物理 化学 生物 地理 天文 哲学 宗教 心理 逻辑 政治 外交 战争 和平 革命 改革 制度 政策 计划 项目 合同 会议 组织 机构 公司 工厂
机器 设备 材料 钢铁 石油 煤炭 天然气 电力 太阳 月亮 地球 星系 宇宙 飞机 火车 汽车 轮船 自行车 电话 手机 电脑 互联网 搜索 引擎 索引 队列 网页 链接 算法 模型 程序
代码 文件 图像 视频 声音 游戏 旅游 酒店 餐厅 公园 博物馆 图书馆 剧院 广场 街道 桥梁 节日 春节 中秋 婚礼 家庭 父母 孩子 朋友 邻居 老人 青年 妇女 工人 农民 作家
我们 他们 自己 大家 今天 明天 昨天 现在 以后 以前 时候 地方 问题 方法 结果 原因 情况 条件 关系 作用 影响 变化 过程 开始 结束 继续 增加 减少 提高 降低 改善 支持 反对
认为 表示 指出 说明 发现 使用 利用 采用 进行 实现 建立 形成 成为 属于 包括 需要 应该 可以 能够 必须 可能 已经 正在 非常 特别 一般 主要 重要 基本 简单 复杂 不同 相同
北京 上海 广州 深圳 南京 武汉 成都 西安 杭州 天津 重庆 香港 台湾 中国 美国 英国 法国 德国 日本 韩国 俄罗斯 印度 非洲 欧洲 亚洲`)

// glue lists the words between Chinese words.
var glue = strings.Fields(`的 的 的 的 了 在 和 是 与 及 对 从 为 把 被 将 中 上 下 里`)

// japanese lists Japanese nouns. Titles use the first 96.
var japanese = strings.Fields(`歴史 文化 教育 科学 技術 経済 社会 政府 企業 市場 製品 会社 管理 発展 研究 分析 情報 データ 機械 工学 設計 建築 環境 エネルギー
交通 鉄道 道路 空港 港 海 川 湖 山 森 草原 砂漠 農業 工業 商業 金融 銀行 保険 投資 貿易 価格 費用 利益 税金 法律 裁判 警察 国家
言語 文字 文学 小説 詩 演劇 映画 テレビ 新聞 雑誌 音楽 踊り 絵画 彫刻 写真 芸術 運動 サッカー 野球 水泳 健康 病院 医者 薬 病気 治療 手術
心臓 血液 細胞 動物 植物 昆虫 果物 野菜 料理 お茶 コーヒー 牛乳 服 家具 学校 大学 学生 教師 数学 物理 化学 生物 地理 哲学 宗教 心理
政治 外交 戦争 平和 計画 会議 組織 工場 材料 石油 電力 太陽 地球 宇宙 飛行機 電車 自動車 電話 検索 索引 記事 計算機 画像 音声 旅行 公園 図書館 祭り 家族 友達`)

// verbs end Japanese clauses.
var verbs = strings.Fields(`見ます 作ります 使います 調べます 考えます 書きます 読みます 始めます 続けます 変えます 増やします 比べます 学びます 守ります 探します 示します`)

// korean lists Korean nouns. Titles use the first 96.
var korean = strings.Fields(`역사 문화 교육 과학 기술 경제 사회 정부 기업 시장 제품 회사 관리 발전 연구 분석 정보 자료 기계 공학 설계 건축 환경 에너지
교통 철도 도로 공항 항구 바다 강물 호수 산맥 숲속 초원 사막 농업 공업 상업 금융 은행 보험 투자 무역 가격 비용 이익 세금 법률 재판 경찰 국가
언어 문자 문학 소설 시집 연극 영화 방송 신문 잡지 음악 무용 그림 조각 사진 예술 운동 축구 야구 수영 건강 병원 의사 약품 질병 치료 수술
심장 혈액 세포 동물 식물 곤충 과일 채소 요리 녹차 커피 우유 의복 가구 학교 대학 학생 교사 수학 물리 화학 생물 지리 철학 종교 심리
정치 외교 전쟁 평화 계획 회의 조직 공장 재료 석유 전력 태양 지구 우주 비행기 기차 자동차 전화 검색 색인 기사 계산기 영상 음성 여행 공원 도서관 축제 가족 친구`)

// particles follow Korean nouns.
var particles = strings.Fields(`은 는 이 가 을 를 에 에서 의 와 과 도`)

// endings lists Korean verbs.
var endings = strings.Fields(`합니다 봅니다 만듭니다 씁니다 읽습니다 찾습니다 배웁니다 지킵니다 바꿉니다 늘립니다 시작합니다 계속합니다`)

// rare lists characters that occur only in the unique words of Chinese documents.
const rare = "饕餮魑魅魍魉璀璨琥珀玳瑁翡翠鹦鹉鸳鸯蝙蝠蜈蚣螳螂蟋蟀蜻蜓蝌蚪蛤蜊琵琶箜篌髑髅囹圄龃龉踟蹰徜徉缱绻旖旎氤氲葳蕤蘼芜薜荔菡萏芙蕖茉莉薔薇罂粟荸荠苜蓿茱萸枇杷枸杞橄榄檀楠梧桐榕槐楸桦柏柞" +
	"麒麟貔貅鲲鹏鹣鲽骐骥獬豸狻猊狴犴"

// kana and syllables do the same for Japanese and Korean ones.
const (
	kana      = "アイウエオカキクケコサシスセソタチツテトナニヌネノハヒフヘホマミムメモラリルレロ"
	syllables = "갹걔겯곗굠귬깟껼꼇꾜뀝낵넴녘놋뉼늪닻댑뎌돗됴딥떫뚝랠렴룃뤠륑맴멱몇뮤밈뱐벡뵀뷰빔"
)
