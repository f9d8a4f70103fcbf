// What the gateway says in sentences of its own, in the visitor's language. The gateway says
// it in English (gateway/health/finding_codes.py, findings.py); a sentence that is not here,
// such as what Redis or a broker has answered, is shown as it came. Pure.

import { isTranslated, language, say } from "../language.js";

export const SENTENCES = {
  // What is wrong
  "Redis has not answered": "Redis 응답 없음",
  "The gateway that is followed has not answered": "따르는 게이트웨이가 응답 없음",
  "The data in Redis has not been readable": "Redis의 데이터를 읽을 수 없음",
  "The trade log has not answered": "체결 로그 응답 없음",
  "There has been no trade log": "체결 로그가 없음",
  "The gateway has not seen the trade log": "게이트웨이가 체결 로그를 볼 수 없음",
  "The throttle job has been starting": "집계 작업 시작 중",
  "The throttle job {job} has been starting": "집계 작업 {job} 시작 중",
  "The throttle job has failed to start": "집계 작업 시작 실패",
  "The throttle job {job} has failed to start": "집계 작업 {job} 시작 실패",
  "No throttle job has published": "발행한 집계 작업이 없음",
  "The throttle job has been dead": "집계 작업 중단",
  "The throttle job {job} has been dead": "집계 작업 {job} 중단",
  "The throttle job has been behind": "집계 작업 지연",
  "The throttle job {job} has been behind": "집계 작업 {job} 지연",
  "The ledger has been off balance": "장부 불일치",
  "No window has reached the gateway": "게이트웨이에 구간이 오지 않음",
  "No trade has come in": "들어오는 체결 없음",
  "Redis may forget what it acknowledged": "Redis가 확인한 데이터를 잃을 수 있음",
  "Redis has evicted keys": "Redis가 키를 축출했음",
  "Redis' memory is nearly full": "Redis 메모리가 거의 참",
  "Trades in Kafka have waited behind an open transaction": "Kafka의 체결이 열린 트랜잭션 뒤에서 대기 중",
  "Producers stamp entries of the topic wrongly": "프로듀서가 토픽의 시각을 잘못 기록함",
  "The archive has stored nothing": "보관되지 않음",
  "The archive {archive} has stored nothing": "보관 {archive}: 보관되지 않음",
  "A worker of the gateway has been lost": "게이트웨이의 워커를 잃음",
  "The gateway has been overloaded": "게이트웨이 과부하",
  "Windows have been published late": "구간 발행 지연",
  "Windows have reached the clients late": "클라이언트 전송 지연",
  "The archive has been behind": "보관 지연",
  "The archive {archive} has been behind": "보관 {archive} 지연",
  "The books of an analytics query have been off balance": "분석 쿼리의 장부 불일치",
  "The books of {query} have been off balance": "분석 쿼리 {query}의 장부 불일치",
  "The analytics job has been dead": "분석 작업 중단",
  "An analytics query has been behind": "분석 쿼리 지연",
  "The analytics query {query} has been behind": "분석 쿼리 {query} 지연",
  "A calendar of market hours ends": "거래 시간 달력이 끝남",
  "After its last day holidays are taken for days of trading, so a quiet market is told as a fault. Install a newer version, or give TICKTHROTTLE_MARKET_HOURS a calendar of your own.":
    "마지막 날 뒤에는 휴일도 거래일로 보아, 조용한 시장을 이상으로 알립니다. 새 버전을 설치하거나 TICKTHROTTLE_MARKET_HOURS에 직접 만든 달력을 주세요.",
  "calendar ends": "달력 끝남",
  "Many clients have taken nothing": "많은 클라이언트가 아무것도 받지 않음",

  // What to do
  "Bring it back, or follow another one. The log lines say why there is no line; once there is one, the stream goes on where it was.":
    "그 게이트웨이를 되살리거나 다른 게이트웨이를 따르세요. 연결이 없는 까닭은 로그에 있습니다. 연결되면 스트림은 멈춘 곳부터 이어집니다.",
  "Bring Redis back. Feeds and the job wait for it and go on by themselves.":
    "Redis를 다시 살리세요. 피드와 작업은 기다렸다가 스스로 이어 갑니다.",
  "The reason says which data. Another version of the throttle, or somebody else, has written to its keys.":
    "어떤 데이터인지는 이유에 있습니다. 다른 버전의 집계 작업이나 다른 누군가가 그 키에 썼습니다.",
  "Bring the brokers of the trade log back. Feeds and the job wait for them.":
    "체결 로그의 브로커를 다시 살리세요. 피드와 작업은 기다립니다.",
  "Start a feed: it makes the log.": "피드를 시작하세요. 피드가 로그를 만듭니다.",
  "Prices go on. Give the gateway the settings of the log that feeds and job have: TICKTHROTTLE_TRADE_LOG and TICKTHROTTLE_KAFKA_….":
    "시세는 계속됩니다. 게이트웨이에 피드와 작업이 쓰는 로그 설정을 주세요: TICKTHROTTLE_TRADE_LOG, TICKTHROTTLE_KAFKA_….",
  "Nothing. It warms up, which takes about twenty seconds, and goes on where it stopped.":
    "할 일이 없습니다. 약 20초 동안 준비한 뒤 멈춘 곳에서 이어 갑니다.",
  "See its log: it says what the job waits for, or why it ends. Then end it and start it again: tickthrottle throttle. Prices are old until it publishes.":
    "로그를 보세요. 무엇을 기다리는지, 왜 끝나는지 나와 있습니다. 그다음 끝내고 다시 시작하세요: tickthrottle throttle. 작업이 발행할 때까지 시세는 지난 값입니다.",
  "Nothing: the supervisor begins another one within ten seconds, and its clients come back by themselves. If it happens again, the gateway's log says whether the worker died or stood still.":
    "할 일이 없습니다. 10초 안에 새 워커가 시작되고 클라이언트는 스스로 다시 연결합니다. 되풀이되면 워커가 죽었는지 멎었는지 게이트웨이 로그에서 확인하세요.",
  "Start it again, on any machine: tickthrottle throttle. It goes on where it stopped and loses no trade.":
    "어느 서버에서든 다시 시작하세요: tickthrottle throttle. 멈춘 곳에서 이어 가며 체결을 잃지 않습니다.",
  "A job that catches up needs nothing. If it stays behind, look at its log lines. End a frozen job and start it again.":
    "따라잡는 중이면 할 일이 없습니다. 계속 지연되면 로그를 보세요. 멎은 작업은 끝내고 다시 시작하세요.",
  "tickthrottle reconcile says which trades are missing or double, and where.":
    "tickthrottle reconcile 명령이 빠지거나 겹친 체결과 그 위치를 알려 줍니다.",
  "See whether job and gateway use the same Redis and namespace; then restart the gateway.":
    "작업과 게이트웨이가 같은 Redis와 네임스페이스를 쓰는지 보고, 게이트웨이를 다시 시작하세요.",
  "While the market is open: see whether the feed runs, and start it again. Windows go on, empty.":
    "장중이라면 피드가 실행 중인지 보고 다시 시작하세요. 구간은 빈 채로 계속됩니다.",
  "New clients are sent away, the others are served. Start another gateway, or give it more memory.":
    "새 클라이언트는 돌려보내고 나머지는 계속 받습니다. 게이트웨이를 더 시작하거나 메모리를 늘리세요.",
  "See which step of a batch takes the time, and what else runs on the job's machine.":
    "배치의 어느 단계가 오래 걸리는지, 작업 서버에서 무엇이 더 실행되는지 보세요.",
  "See what else runs on the gateway's machine; start another gateway.":
    "게이트웨이 서버에서 무엇이 더 실행되는지 보고, 게이트웨이를 더 시작하세요.",
  "Prices go on. If the archive is dead, start it again: tickthrottle archive. What leaves the window log before it is stored, after a quarter of an hour, is missing for good.":
    "시세는 계속됩니다. 보관 작업이 중단되었으면 다시 시작하세요: tickthrottle archive. 15분 뒤 구간 로그를 벗어날 때까지 보관하지 못한 구간은 되찾을 수 없습니다.",
  "Prices go on. The reason says what is missing. Save the job's log lines, and compare with the books of the throttle: tickthrottle ledger.":
    "시세는 계속됩니다. 무엇이 빠졌는지는 이유에 있습니다. 작업의 로그를 저장하고 집계 작업의 장부와 비교하세요: tickthrottle ledger.",
  "Prices go on. Start it again: tickthrottle analytics. It goes on where it stopped, as far as the log goes back.":
    "시세는 계속됩니다. 다시 시작하세요: tickthrottle analytics. 로그가 남아 있는 한 멈춘 곳에서 이어 갑니다.",
  "Prices go on. A query that catches up needs nothing. If it stays behind, look at the job's log lines and give it more of the machine.":
    "시세는 계속됩니다. 따라잡는 중이면 할 일이 없습니다. 계속 지연되면 작업의 로그를 보고 서버 자원을 늘리세요.",
  "Set what the reason says at once: a key that is evicted takes trades, windows or positions with it. Then compare: tickthrottle reconcile.":
    "이유에 적힌 설정을 바로 적용하세요. 축출된 키와 함께 체결, 구간, 위치가 사라집니다. 그다음 비교하세요: tickthrottle reconcile.",
  "It does not any more. Compare what is left: tickthrottle reconcile. CONFIG RESETSTAT, or a restart of Redis, ends this finding.":
    "지금은 축출하지 않습니다. 남은 것을 비교하세요: tickthrottle reconcile. CONFIG RESETSTAT 또는 Redis 재시작으로 이 항목이 사라집니다.",
  "Once it is full, Redis takes nothing more, and feeds and job wait. Raise maxmemory, or lower TICKTHROTTLE_TRADE_LOG_CAP.":
    "가득 차면 Redis가 더 받지 않고 피드와 작업이 기다립니다. maxmemory를 늘리거나 TICKTHROTTLE_TRADE_LOG_CAP을 줄이세요.",
  "Nobody reads past it until its producer commits or aborts, or the brokers end it (transaction.timeout.ms): see to that producer. kafka-transactions.sh find-hanging names it.":
    "프로듀서가 커밋하거나 중단할 때까지, 또는 브로커가 끝낼 때까지(transaction.timeout.ms) 아무도 그 뒤를 읽지 못합니다. 그 프로듀서를 확인하세요. kafka-transactions.sh find-hanging 명령이 알려 줍니다.",
  "Correct the clock, or the unit, of whoever sets the time of the records, or have the brokers stamp: message.timestamp.type=LogAppendTime. Trades that are ahead of an old stamp are refused as old_stamp.":
    "레코드 시각을 기록하는 쪽의 시계나 단위를 고치거나 브로커가 기록하게 하세요: message.timestamp.type=LogAppendTime. 오래된 시각보다 앞선 체결은 old_stamp로 거부됩니다.",
  "Prices go on. The reason says what is missing: make room, or bring the database back. What leaves the window log before it is stored, after a quarter of an hour, is missing for good.":
    "시세는 계속됩니다. 무엇이 부족한지는 이유에 있습니다. 공간을 만들거나 데이터베이스를 다시 살리세요. 15분 뒤 구간 로그를 벗어날 때까지 보관하지 못한 구간은 되찾을 수 없습니다.",
  "The gateway closes a client that stays stuck. If most clients are stuck, look at the network in front of the gateway.":
    "받지 않는 클라이언트는 게이트웨이가 끊습니다. 대부분이 그러하면 게이트웨이 앞의 네트워크를 보세요.",

  // Why
  "its newest window ended {seconds} s ago": "최근 구간이 {seconds}초 전에 끝났습니다",
  "it has published nothing yet": "아직 아무것도 발행하지 않았습니다",
  "it has been starting for {seconds} s": "{seconds}초 동안 시작 중입니다",
  "it has been started {count} times in a row": "연달아 {count}번 시작되었습니다",
  "it has said nothing for {seconds} s": "{seconds}초 동안 아무 소식이 없습니다",
  "nobody makes {products}": "만드는 작업이 없습니다: {products}",
  "it has read the log up to {seconds} s ago": "{seconds}초 전까지의 로그를 읽었습니다",
  "the newest one {seconds} s after its end": "최근 구간은 끝난 지 {seconds}초 뒤",
  "{stuck} of {all}": "{all}개 중 {stuck}개",
  "no trade for {seconds} s": "{seconds}초 동안 체결이 없습니다",
  "no window for {seconds} s": "{seconds}초 동안 새 구간이 없습니다",
  "job {job}: no window for {seconds} s": "작업 {job}: {seconds}초 동안 새 구간이 없습니다",
  "{keys} keys since it was started": "시작한 뒤 키 {keys}개",
  "{used} of {most} MiB are used": "{most} MiB 중 {used} MiB 사용",
  "no window yet": "아직 첫 구간이 오지 않았습니다",
  "the gateway uses {used} MiB of memory, {most} MiB is the most for new clients":
    "게이트웨이가 메모리 {used} MiB를 쓰고 있습니다. 새 클라이언트는 {most} MiB까지 받습니다",
  "the gateway is {late} ms late, {most} ms is the most for new clients":
    "게이트웨이가 {late} ms 늦습니다. 새 클라이언트는 {most} ms까지 받습니다",
  "Redis: not connected": "Redis: 연결되지 않음",
  "Redis: no answer within {seconds} s": "Redis: {seconds}초 안에 응답 없음",
  "there is no trade log under {key}": "{key}에 체결 로그가 없습니다",
  "{count} unaccounted": "{count}건 누락",
  "{count} too many": "{count}건 초과",
  "{count} not read": "{count}건 읽지 않음",
  "it does not accept the operators' token of this gateway": "이 게이트웨이의 운영자 토큰을 받아들이지 않음",
  "it has not answered within {seconds} s": "{seconds}초 안에 응답 없음",
  "it has answered {status}": "응답 {status}",
  "its answer has more than {size} bytes": "응답이 {size}바이트를 넘음",
  "its answer is not that of a gateway": "게이트웨이의 응답이 아님",
  "no connection: Connection refused": "연결 거부됨",

  // How a stage is
  "does not answer": "응답 없음",
  "not readable": "읽을 수 없음",
  "not seen": "보이지 않음",
  "not known": "알 수 없음",
  "see upstream": "위 게이트웨이에서 확인",
  "waits for the log": "로그 대기",
  "no new window": "새 구간 없음",
  "waits for windows": "구간 대기",
  "old windows": "지난 구간",
  "serves old prices": "지난 시세 제공",
  starting: "시작 중",
  "does not start": "시작 안 됨",
  "lost a worker": "워커 잃음",
  "hears no window": "구간 수신 없음",
  quiet: "조용함",
  overloaded: "과부하",
  late: "늦음",
  "archive behind": "보관 지연",
  "archive stores nothing": "보관 안 됨",
  "may evict keys": "키 축출 가능",
  "has evicted keys": "키 축출됨",
  "memory nearly full": "메모리 부족",
  "waits for a transaction": "트랜잭션 대기",
  "wrong stamps": "잘못된 시각",
  "analytics off balance": "분석 장부 불일치",
  "no analytics job": "분석 작업 없음",
  "analytics behind": "분석 지연",
  "many stuck": "다수 멈춤",
};

const NUMBERS = new Set(["seconds", "stuck", "all", "count", "size", "status", "used", "late", "most", "keys"]);

const FORMS = Object.keys(SENTENCES)
  .filter((sentence) => sentence.includes("{"))
  .map((sentence) => [sentence, patternOf(sentence)]);

function patternOf(sentence) {
  const escaped = sentence.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
  const places = escaped.replace(/\{(\w+)\}/g, (_, name) => `(?<${name}>${NUMBERS.has(name) ? "[\\d.,]+" : ".+"})`);
  return new RegExp(`^${places}$`);
}

export function told(text) {
  if (language() === "en") return text;
  if (isTranslated(text)) return say(text);
  for (const [sentence, pattern] of FORMS) {
    const values = pattern.exec(text)?.groups;
    if (values) return say(sentence, values);
  }
  return text;
}
