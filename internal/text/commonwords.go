package text

import (
	"strings"
)

// commonWords are words that are frequent in a language and rare in others of its
// script, or frequent in few of them.
var commonWords = [...]struct{ lang, words string }{
	{"en", "the of and to in is that for it with as was on are by this be from at or not have you an which but they were has his can will been all if when their more its we do what"},
	{"de", "der die und in den von zu das mit sich des auf für ist im dem nicht ein eine als auch es an werden aus er hat dass sie nach wird bei einer um am sind noch wie einem über einen so zum war haben nur oder aber vor zur bis mehr durch man wir ich"},
	{"fr", "de la le et les des en un du une que est pour qui dans a par plus pas au sur ne se ce il sont avec ou aux son mais comme nous cette été vous leur être on même ses dont ces fait elle"},
	{"es", "de la que el en y a los del se las por un para con no una su al lo como más pero sus le ya o este sí porque esta entre cuando muy sin sobre también me hasta hay donde quien desde todo nos durante es son fue"},
	{"it", "di e il la che in un a per è una sono mi si ho ma ha non con le lo se da come i del della gli al più alla anche dei nel questo delle ai essere dal era sul nella degli loro"},
	{"pt", "de a o que e do da em um para é com não uma os no se na por mais as dos como mas foi ao ele das tem à seu sua ou ser quando muito há nos já está eu também só pelo pela até isso são"},
	{"nl", "de van een het en in is dat op te zijn met voor niet aan er om ook als dan maar bij of uit nog naar heeft hij ze wordt door over tot je mijn deze zo zich hebben meer kan worden ik we wat"},
	{"sv", "och i att det som en på är av för med den till inte har de ett om han var men sig från vi så kan när år under också efter eller nu sin där vid mot ska skulle kommer ut får finns vara hade alla"},
	{"da", "og i at det er en til af på de med den for ikke der som et har han var men om fra vi så kan jeg også efter eller nu sin ved mod skal skulle kommer ud får være havde alle blev hvor over blive deres"},
	{"no", "og i det er en til som på de av med at for ikke den har et var han men om fra vi så kan jeg også etter eller nå sin ved mot skal skulle kommer ut får være hadde alle ble hvor over bli mer deres"},
	{"fi", "ja on ei se että oli hän mutta ovat kun niin kuin myös joka mitä tai sen ole vain jos hänen mukaan kanssa vuoden jo sekä kuitenkin olla tämä voi ollut sitä mikä nyt ne joita"},
	{"hu", "a az és hogy nem is egy ez volt meg de csak el már mint még ha azt vagy van ki fel lehet ezt azonban sem majd pedig amely olyan között után minden több kell"},
	{"ro", "de și în a la cu pe că nu din care o un se este mai pentru sunt au fi ca sa dar fost prin lui am ce după sau fără între această acest îi iar cum"},
	{"pl", "w i na z się do nie że jest o to po a jak od za przez ale co są dla oraz tym ich był jego przy tylko może ze jako być czy już który które która również"},
	{"cs", "a se v na je že o s z do i to k ve pro za by ale si po jako jsem od jeho které který která nebo také však jsou když už při může než být pouze má"},
	{"sk", "a sa v na je že o s z do i to k vo pre za by ale si po ako od jeho ktoré ktorý ktorá alebo tiež však sú keď už pri môže než byť aj má"},
	{"hr", "i u je se na da za su od s o a ne što kao to koji koja koje iz bi će ili ali samo bio nije po može više još sve biti kako do te"},
	{"sl", "in je v na se da za so z pa ki ne po tudi s kot bi od o ali ni le še pri bil iz lahko kar že ter do sem biti več med"},
	{"tr", "ve bir bu da de için ile çok olarak daha gibi olan kadar sonra en var ne o ama veya ise olduğu göre her ancak değil tarafından oldu mi ya"},
	{"ga", "agus ar sa ag tá ní bhí leis mar sin atá ach nó é seo chun ó faoi den gur bhfuil as"},
	{"ca", "de la i el que en a les els un per del és una amb al no va com més ha són però dels seu aquest aquesta també o ser on seva entre fins quan molt ja"},
	{"vi", "và của là có được trong cho không một các những người với đã này để khi về từ đến như cũng ra nhiều ở vào tại còn sẽ năm theo"},
	{"id", "yang dan di dengan untuk dari pada ini dalam tidak itu adalah ke oleh akan juga atau sebagai karena telah dapat mereka bisa ada lebih tersebut seperti kami kita"},
	{"et", "ja on et ei see kui oli ka mis aga ta või oma ning siis kes nii välja üle pärast veel seda selle mida olid ma kuid pole saab"},
	{"lv", "un ir ar no par uz tas kas ka bet arī kā tika pie vai pēc to viņš ne lai gan tiek bija šo gada līdz"},
	{"lt", "ir kad yra su iš į tai kaip bet ar jis ne buvo už bus apie dėl po tik jau per kurie nuo metų prie"},
	{"eu", "eta da ez bat du ere dira zuen izan dute den baina dela duen hau edo bere egin baino gehiago zen"},
	{"ru", "то ещё её этот и в не на я что с он как это по но к у из за от а же вы так для все его о до мы было или она они бы если только при уже был будет их когда"},
	{"uk", "то ще цей і в не на що з він як це та по але до у за від є для його про був було або вона вони якщо тільки при вже їх коли також який яка які ми бо"},
	{"bg", "и на в се за да от с не са че по ще това но как до е или към при като със който която които беше бъде само след още има ли му"},
	{"sr", "и у је се на да за су од са о а не што као то који која које из би ће или али само био није по може више још све бити како до те"},
	{"be", "і ў не на што з ён як гэта па але да у за ад для яго пра быў было або яна яны калі толькі пры ўжо іх таксама які якая якія"},
	{"ar", "في من على إلى أن عن التي هذا هذه مع الذي كان لا ما أو بعد قد كما لم بين كل هو هي ذلك عند حيث إن ولا وقد"},
	{"fa", "و در به از که این را با است برای آن یک بود شد می تا بر خود هم نیز اما یا شده های آنها باید کرد دارد ها"},
	{"ur", "کے میں کی ہے اور سے کا کو اس ہیں کہ نے پر یہ ایک بھی تھا نہیں جو وہ کر ہو تھے لیے گیا"},
	{"hi", "के में की है और से का को इस हैं कि ने पर यह एक भी था नहीं जो वह कर हो थे लिए गया या तो ही"},
	{"mr", "आहे आणि या च्या व हे ते मध्ये होते एक असे नाही केले आहेत की होता तर हा त्या करण्यात"},
	{"ne", "को मा र छ हो पनि गरेको भएको यो एक छन् तथा लाई ले गर्ने थियो भन्ने बाट गर्न रहेको"},
}

// wordLanguages says of each common word whose it is: bits are indices.
var wordLanguages = func() map[string]uint64 {
	m := map[string]uint64{}
	for i, c := range commonWords {
		for w := range strings.FieldsSeq(c.words) {
			m[w] |= 1 << i
		}
	}
	return m
}()
