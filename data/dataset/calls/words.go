package calls

// wording is how a thing or a deed is called: by everybody, and by some people at home. The
// base reads the first words alone.
type wording struct{ public, private []string }

// deeds are what a command wants done.
var deeds = map[string]wording{
	"start":  {[]string{"turn on", "switch on", "start"}, []string{"fire up", "power up", "kick off", "flip on"}},
	"stop":   {[]string{"turn off", "switch off", "stop"}, []string{"kill", "shut down", "knock off", "cut"}},
	"set":    {[]string{"set", "change", "put"}, []string{"crank", "nudge", "bump", "dial"}},
	"show":   {[]string{"show me", "tell me", "read"}, []string{"gimme", "pull up", "run me through", "what about"}},
	"add":    {[]string{"add", "create", "make"}, []string{"jot down", "stick in", "pencil in", "slot in"}},
	"remove": {[]string{"delete", "remove", "cancel"}, []string{"scrap", "ditch", "bin", "forget"}},
	"open":   {[]string{"open", "unlock"}, []string{"pop", "crack", "let me through"}},
	"close":  {[]string{"close", "lock"}, []string{"seal", "bolt", "slam"}},
	"send":   {[]string{"send", "write"}, []string{"shoot", "fling", "fire off"}},
	"find":   {[]string{"find", "search for", "look for"}, []string{"hunt down", "dig up", "sniff out"}},
	"get":    {[]string{"order", "book", "reserve"}, []string{"snag", "grab", "sort out", "nab"}},
	"play":   {[]string{"play", "put on"}, []string{"blast", "spin", "throw on"}},
}

// things are what a command is about.
var things = map[string]wording{
	"light":       {[]string{"light", "lamp"}, []string{"bulb", "glow"}},
	"heating":     {[]string{"heating", "heater"}, []string{"radiator", "warmth"}},
	"fan":         {[]string{"fan"}, []string{"blower", "propeller"}},
	"blinds":      {[]string{"blinds", "shutters"}, []string{"shades", "drapes"}},
	"door":        {[]string{"door", "front door"}, []string{"entrance", "main gate"}},
	"vacuum":      {[]string{"vacuum", "vacuum cleaner"}, []string{"hoover", "dust robot"}},
	"washer":      {[]string{"washing machine", "washer"}, []string{"laundry thing", "spin tub"}},
	"oven":        {[]string{"oven"}, []string{"cooker", "bakebox"}},
	"sprinkler":   {[]string{"sprinkler", "watering"}, []string{"hose", "lawn shower"}},
	"timer":       {[]string{"timer"}, []string{"countdown", "ticker"}},
	"alarm":       {[]string{"alarm"}, []string{"wake up call", "buzzer"}},
	"reminder":    {[]string{"reminder"}, []string{"memo", "heads up"}},
	"meeting":     {[]string{"meeting", "appointment"}, []string{"catch up", "sit down"}},
	"calendar":    {[]string{"calendar"}, []string{"diary", "agenda"}},
	"message":     {[]string{"message", "text message"}, []string{"line", "ping"}},
	"mail":        {[]string{"mail", "email"}, []string{"letter", "inbox note"}},
	"call":        {[]string{"call", "phone call"}, []string{"ring", "buzz"}},
	"music":       {[]string{"music"}, []string{"tunes", "tracks"}},
	"volume":      {[]string{"volume"}, []string{"loudness", "sound level"}},
	"radio":       {[]string{"radio"}, []string{"wireless", "station"}},
	"film":        {[]string{"film", "movie"}, []string{"flick", "big screen thing"}},
	"weather":     {[]string{"weather", "forecast"}, []string{"sky", "outside situation"}},
	"news":        {[]string{"news"}, []string{"headlines", "gossip"}},
	"traffic":     {[]string{"traffic"}, []string{"jams", "road mess"}},
	"route":       {[]string{"route", "way"}, []string{"directions", "path"}},
	"recipe":      {[]string{"recipe"}, []string{"cooking idea", "instructions"}},
	"restaurant":  {[]string{"restaurant"}, []string{"eatery", "place to eat"}},
	"list":        {[]string{"shopping list"}, []string{"groceries", "errands"}},
	"food":        {[]string{"meal", "dinner"}, []string{"grub", "takeaway"}},
	"taxi":        {[]string{"taxi", "cab"}, []string{"ride", "lift"}},
	"flight":      {[]string{"flight"}, []string{"plane", "hop"}},
	"hotel":       {[]string{"hotel", "hotel room"}, []string{"bed", "place to sleep"}},
	"train":       {[]string{"train"}, []string{"rail seat", "express"}},
	"table":       {[]string{"table"}, []string{"spot", "seats"}},
	"car":         {[]string{"car"}, []string{"motor", "wheels"}},
	"workout":     {[]string{"workout", "training"}, []string{"sweat session", "gym time"}},
	"steps":       {[]string{"steps", "step count"}, []string{"mileage", "walking tally"}},
	"note":        {[]string{"note"}, []string{"scribble", "thought"}},
	"photo":       {[]string{"photo", "picture"}, []string{"snap", "selfie"}},
	"account":     {[]string{"account balance", "balance"}, []string{"funds", "cash left"}},
	"parcel":      {[]string{"parcel", "package"}, []string{"delivery", "box"}},
	"temperature": {[]string{"temperature"}, []string{"degrees inside", "mercury"}},
}

// values are what a command may name, by what it is.
var values = map[string][]string{
	"room":  {"kitchen", "bedroom", "bathroom", "hall", "office", "garage", "cellar", "nursery"},
	"city":  {"berlin", "paris", "london", "madrid", "rome", "vienna", "oslo", "lisbon", "prague", "dublin", "athens", "zurich"},
	"day":   {"monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday", "tomorrow", "today"},
	"dish":  {"pizza", "soup", "curry", "pasta", "sushi", "salad", "tacos", "ramen", "paella", "falafel"},
	"genre": {"jazz", "rock", "opera", "blues", "folk", "techno", "soul", "metal"},
	"item":  {"milk", "bread", "eggs", "rice", "butter", "apples", "coffee", "cheese", "onions", "sugar"},
}

// phrases say before a value what it is to a command, in turn by public and private use.
var phrases = map[string][2]string{
	"room": {"in the %s", "over in the %s"}, "city": {"in %s", "round %s"}, "day": {"on %s", "come %s"},
	"dish": {"for %s", "with %s"}, "genre": {"of %s", "some %s"}, "item": {"for %s", "of %s"},
	"minutes": {"for %s minutes", "%s mins"}, "percent": {"to %s percent", "up to %s"},
	"time": {"at %s", "round about %s"}, "person": {"with %s", "for %s"},
}

// function is one that a command may call.
type function struct {
	name, deed, thing string
	arguments         []string
}

// functions are what can be called.
var functions = []function{
	{"light_on", "start", "light", []string{"room"}}, {"light_off", "stop", "light", []string{"room"}}, {"light_dim", "set", "light", []string{"room", "percent"}},
	{"heating_on", "start", "heating", []string{"room"}}, {"heating_off", "stop", "heating", []string{"room"}},
	{"fan_on", "start", "fan", []string{"room"}}, {"fan_off", "stop", "fan", []string{"room"}}, {"fan_speed", "set", "fan", []string{"percent"}},
	{"blinds_open", "open", "blinds", []string{"room"}}, {"blinds_close", "close", "blinds", []string{"room"}},
	{"door_open", "open", "door", nil}, {"door_close", "close", "door", nil},
	{"vacuum_start", "start", "vacuum", []string{"room"}}, {"vacuum_stop", "stop", "vacuum", nil},
	{"washer_start", "start", "washer", []string{"time"}}, {"washer_stop", "stop", "washer", nil},
	{"oven_start", "start", "oven", []string{"minutes"}}, {"oven_stop", "stop", "oven", nil},
	{"sprinkler_start", "start", "sprinkler", []string{"minutes"}}, {"sprinkler_stop", "stop", "sprinkler", nil},
	{"temperature_show", "show", "temperature", []string{"room"}},
	{"timer_add", "add", "timer", []string{"minutes"}}, {"timer_remove", "remove", "timer", nil}, {"timer_show", "show", "timer", nil},
	{"alarm_add", "add", "alarm", []string{"time", "day"}}, {"alarm_remove", "remove", "alarm", []string{"day"}},
	{"reminder_add", "add", "reminder", []string{"day", "time"}}, {"reminder_remove", "remove", "reminder", []string{"day"}},
	{"meeting_add", "add", "meeting", []string{"person", "day"}}, {"meeting_remove", "remove", "meeting", []string{"person"}},
	{"calendar_show", "show", "calendar", []string{"day"}},
	{"message_send", "send", "message", []string{"person"}}, {"message_show", "show", "message", nil},
	{"mail_send", "send", "mail", []string{"person"}}, {"mail_show", "show", "mail", nil}, {"mail_find", "find", "mail", []string{"person"}},
	{"call_start", "start", "call", []string{"person"}}, {"call_stop", "stop", "call", nil},
	{"music_play", "play", "music", []string{"genre"}}, {"music_stop", "stop", "music", nil}, {"volume_set", "set", "volume", []string{"percent"}},
	{"radio_play", "play", "radio", []string{"room"}}, {"film_play", "play", "film", []string{"time"}}, {"film_find", "find", "film", []string{"city"}},
	{"weather_show", "show", "weather", []string{"city", "day"}}, {"news_show", "show", "news", []string{"city"}},
	{"traffic_show", "show", "traffic", []string{"city"}}, {"route_find", "find", "route", []string{"city"}},
	{"recipe_find", "find", "recipe", []string{"dish"}}, {"restaurant_find", "find", "restaurant", []string{"city", "dish"}},
	{"list_add", "add", "list", []string{"item"}}, {"list_remove", "remove", "list", []string{"item"}}, {"list_show", "show", "list", nil},
	{"food_order", "get", "food", []string{"dish"}}, {"taxi_order", "get", "taxi", []string{"time"}}, {"taxi_cancel", "remove", "taxi", nil},
	{"flight_book", "get", "flight", []string{"city", "day"}}, {"hotel_book", "get", "hotel", []string{"city", "day"}},
	{"train_book", "get", "train", []string{"city", "time"}}, {"table_book", "get", "table", []string{"time", "day"}},
	{"car_find", "find", "car", nil}, {"car_lock", "close", "car", nil}, {"workout_start", "start", "workout", []string{"minutes"}},
	{"steps_show", "show", "steps", []string{"day"}}, {"note_add", "add", "note", []string{"day"}}, {"photo_send", "send", "photo", []string{"person"}},
	{"account_show", "show", "account", nil}, {"parcel_find", "find", "parcel", nil},
}

// openers and closers stand around a command, by public and private use.
var (
	openers = wording{[]string{"", "", "please", "can you", "could you"}, []string{"", "hey you", "yo", "be a dear and", "right then", "listen"}}
	closers = wording{[]string{"", "", "please", "now"}, []string{"", "will you", "cheers", "sharpish", "ta"}}
)
