-- One limiter's arithmetic, that of package smooth, on one key. Everything else is in ARGV: the terms, what
-- the call is about, what comes back, and what is asked for, each a string of doubles, the highest byte first.
--
-- The state s is what smooth has, the permits stored and the debt after the anchor, and what giving back needs:
--   slot      the number of the stretch at the end of the queue: each sale that costs time is one.
--   runs      stretches still ahead that were given back, oldest first: {low, high, begin, length, kept},
--             where high is the number of the last one and low that of what lies before the first.
--             When the end of the queue is one, it falls. When its time comes, it is idle time.
--   deferred  permits that came back so, while others were still promised later times. They are for
--             requests that would have to wait, and are stored when the debt is paid.
--   rooms     what would still have fitted (capacity - level) just before permits were taken at once:
--             {time, room}, oldest first, rising. A late return is worth at most the least of
--             them since: the rest would have been spilled.
--   held      stored permits of requests that wait for the pause to end: they would miss them if it ended now.
--   peak      the largest promise that may still be running: newer of those after the fence, peak of all before.
--   hold      when a pause ends. born: when the key was made; slots sold before are not known here.
--   last      when the newest goes, each: at what interval it was sold, fixed: when Retime moved its end.
-- Times are the limiter's own (time, in microseconds): the server's, but never running back. The queue's are
-- nanoseconds after the epoch, which is when the debt began; so they are exact for 104 days of debt.
-- A state without debt is a short one, and selling needs no more: the rest of the machine is only built if the
-- state is long, or something comes back. In Lua a table costs 1 us, and every function that might be called something.
local struct, math, string, table = struct, math, string, table
local pack, unpack, min, max = struct.pack, struct.unpack, math.min, math.max
local capacity, interval, refill, base, threshold, slope, upfront, full = unpack('>dddddddd', ARGV[1])
local not_after, pause, touch = unpack('>ddd', ARGV[2])
upfront = upfront == 1
local store = max(0, capacity)
local bursty = base == 0 and interval > 0 -- stored permits are free, so they can be had at any time
local longest = 9.2e18
local short, short_form = 'pac\1', '>c4dddddd'
local long, long_form, long_size = 'pac\2', '>c4dddddddddddddddddH', 142

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if now > not_after then
  return {now} -- nobody waits for the answer any more
end

-- note remembers the room right before somebody goes.
local function note(rooms, time, before)
  local n = #rooms
  while n > 0 do
    local t, r = unpack('>dd', rooms, n - 15)
    if t == time then before = min(before, r) elseif r < before then break end
    n = n - 16
  end
  rooms = string.sub(rooms, 1, n) .. pack('>dd', time, before)
  local ratio, most = 1.03, 128 * 16
  while #rooms > most do -- neighbours merge: the later time, the lower room
    local parts, t, r = {}, unpack('>dd', rooms, 1)
    for i = 17, #rooms, 16 do
      local t2, r2 = unpack('>dd', rooms, i)
      if r2 > r * ratio then
        parts[#parts + 1] = pack('>dd', t, r)
        r = r2
      end
      t, r = t2, min(r, r2)
    end
    parts[#parts + 1] = pack('>dd', t, r)
    rooms, ratio, most = table.concat(parts), ratio * ratio, 96 * 16
  end
  return rooms
end

-- A missing key is a full store: it is kept for as long as it takes to pay and to fill.
local stored, debt, time, slot, born, rooms = store, 0, now, 1, now, ''
local anchor, of, newer, last, each = now, capacity, 0, 0, interval
local text, _ = redis.call('GET', KEYS[1])
local kind = text and string.sub(text, 1, 4)
if kind == short and #text >= 52 then
  _, anchor, time, of, stored, slot, born = unpack(short_form, text)
  rooms = string.sub(text, 53)
end
local passed = max(0, now - anchor)
-- A clock that was set back is written at once, or callers who are refused would wait until it is where it was.
local changed = now < anchor or touch >= 0 or pause ~= 0 or ARGV[3] ~= ''
local s, room, at_once -- the machine, if it is needed

if not changed and of == capacity and (kind == short or not text) then
  time, stored = time + passed, min(store, stored + passed * 1000 * refill)
else

s = {stored = stored, debt = 0, time = time, deferred = 0, slot = slot, runs = '', rooms = rooms,
  peak = 0, newer = 0, fence = 0, hold = 0, held = 0, epoch = time, born = born, last = 0, each = interval, fixed = 0,
  at = 0}
if kind == long and #text >= long_size then
  local runs
  _, anchor, s.time, of, s.stored, s.debt, s.deferred, s.peak, s.newer, s.fence, s.hold, s.held,
    s.epoch, s.slot, s.born, s.last, s.each, s.fixed, runs = unpack(long_form, text)
  if #text > long_size then
    runs = long_size + runs * 40
    s.runs, s.rooms = string.sub(text, long_size + 1, runs), string.sub(text, runs + 1)
  end
elseif text and not (kind == short and #text >= 52) then
  -- The text of versions before this one. The slots that they sold do not come back.
  local a, b, c, d, e = string.match(text, '^(%S+) (%S+) (%S+) (%S+) (%S+) %S+ %S+ %S+')
  s.stored, s.debt, anchor, of, s.deferred = tonumber(a), tonumber(b), tonumber(c), tonumber(d), tonumber(e)
  if not (s.stored and s.debt and anchor and of and s.deferred) then
    return redis.error_reply('WRONGTYPE the value is not the state of a limiter')
  end
  s.time, s.epoch, s.born, s.peak, s.fence = anchor, anchor, now, math.huge, s.debt
end
passed = max(0, now - anchor)
changed = changed or now < anchor

if of ~= capacity then -- this caller has another rate: stored permits scale with the store
  if of < 0 or capacity < 0 then
    s.stored, s.deferred, s.held, s.rooms, s.runs = full == 1 and store or 0, 0, 0, '', ''
    s.slot, s.born = s.slot + 1, s.time + 1 -- what was sold before has nothing to do with this store
  elseif of == 0 then
    s.stored, s.deferred, s.held, s.rooms = 0, 0, 0, pack('>dd', s.time, 0) -- nothing fitted
  else
    local scale = capacity / of
    s.stored, s.deferred, s.held = min(s.stored * scale, 1.7e308), min(s.deferred * scale, 1.7e308), s.held * scale
    s.peak, s.newer = s.peak * scale, s.newer * scale
    local parts = {}
    for i = 1, #s.rooms, 16 do
      local t, room = unpack('>dd', s.rooms, i)
      parts[#parts + 1] = pack('>dd', t, room * scale)
    end
    s.rooms, parts = table.concat(parts), {}
    for i = 1, #s.runs, 40 do
      local low, high, begin, length, kept = unpack('>ddddd', s.runs, i)
      parts[#parts + 1] = pack('>ddddd', low, high, begin, length, kept * scale)
    end
    s.runs = table.concat(parts)
  end
end

-- room is what still fits. Paid upfront, the store also holds what the others wait for.
function room()
  local fits = store - s.stored - s.deferred
  if upfront and s.debt > 0 then fits = fits - max(s.peak, s.newer) end
  return max(0, fits)
end

-- deposit takes back what was taken at a time: permits at once, and what idles in a stretch of the queue that
-- has passed. It is worth what would still be there had it been so from then on. Times are from now.
local function deposit(permits, taken, begin, stop, worth)
  local rooms, time, unpack, min = s.rooms, s.time, struct.unpack, math.min
  local first, parts = #rooms + 1, {}
  while first > 1 and (unpack('>d', rooms, first - 16) - time) * 1000 > taken do first = first - 16 end
  for i = first, #rooms, 16 do
    local t, r = unpack('>dd', rooms, i)
    local idle = min(stop, (t - time) * 1000)
    if idle > begin then permits, begin = permits + (idle - begin) * worth, idle end
    permits = min(permits, r)
    parts[#parts + 1] = struct.pack('>dd', t, r - permits)
  end
  s.rooms = string.sub(rooms, 1, first - 1) .. table.concat(parts)
  if stop > begin then permits = permits + (stop - begin) * worth end
  permits = min(permits, room())
  if s.debt > 0 then s.deferred = s.deferred + permits else s.stored = s.stored + permits end
end

-- paid is called when nothing is owed any more.
local function paid()
  s.stored, s.deferred, s.debt = min(store, s.stored + s.deferred), 0, 0
  s.runs, s.peak, s.newer, s.fence = '', 0, 0, 0
  s.epoch, s.hold, s.at, s.last = s.time, max(0, s.hold - s.at), 0, 0
end

-- free puts a stretch that is still ahead among the runs, and joins it with its neighbours.
local function free(low, high, begin, length, kept)
  local unpack, sub, runs = struct.unpack, string.sub, s.runs
  local i, j = 0, #runs / 40
  while i < j do
    local middle = math.floor((i + j) / 2)
    if unpack('>d', runs, middle * 40 + 17) <= begin then i = middle + 1 else j = middle end
  end
  local before, after = sub(runs, 1, i * 40), sub(runs, i * 40 + 1)
  if before ~= '' then
    local l, h, b, n, k = unpack('>ddddd', before, #before - 39)
    if h == low then
      low, begin, length, kept, before = l, b, n + length, k + kept, sub(before, 1, -41)
    end
  end
  if after ~= '' then
    local l, h, _, n, k = unpack('>ddddd', after)
    if l == high then
      high, length, kept, after = h, length + n, kept + k, sub(after, 41)
    end
  end
  runs = before .. struct.pack('>ddddd', low, high, begin, length, kept) .. after
  if #runs > 512 * 40 then runs = sub(runs, 41) end -- the next: its time passes unused
  s.runs = runs
end

-- fall takes the runs at the end of the queue off it.
local function fall()
  while s.runs ~= '' do
    local low, high, _, length, kept = struct.unpack('>ddddd', s.runs, #s.runs - 39)
    if high ~= s.slot then break end
    s.debt, s.slot, s.runs = s.debt - length, low, string.sub(s.runs, 1, -41)
    if s.debt < 0.5 then paid() end -- but for what was rounded
    if kept > 0 then deposit(kept, 0, 0, 0, 0) end
  end
  if s.debt < 0.5 then paid() end
end

-- The state is brought up to now.
s.time = s.time + passed
s.at = (s.time - s.epoch) * 1000
passed = passed * 1000
while s.runs ~= '' do -- runs whose time has come were idle
  local low, high, begin, length, kept = unpack('>ddddd', s.runs)
  if begin >= s.at then break end
  local stop, from = min(s.at, begin + length), max(begin, s.hold) -- nothing is saved up in a pause
  local idle = 0
  if bursty and stop > from then idle = (stop - from) * refill end
  s.runs = string.sub(s.runs, 41)
  if begin + length <= s.at then
    idle = idle + kept
  else
    s.runs = pack('>ddddd', low, high, s.at, begin + length - s.at, kept) .. s.runs
  end
  s.deferred = s.deferred + min(idle, room())
end
if passed > 0 then
  if s.debt > 0 and bursty and upfront then s.rooms = note(s.rooms, s.time, room()) end -- somebody may have gone
  if passed < s.debt then
    s.debt = s.debt - passed
  else
    local idle = passed - s.debt
    if s.debt > 0 then paid() end
    s.stored = min(store, s.stored + idle * refill)
    s.epoch, s.at, s.hold, s.fence = s.time, 0, 0, 0
  end
end
if s.at >= s.hold then s.held = 0 end
if s.at >= s.fence then -- of those before it nobody is left
  s.peak, s.newer, s.fence = s.newer, 0, s.at + s.debt
end

-- Slots that come back.
for i = 1, #ARGV[3], 64 do
  local number, sold, begin, length, ready, kept, worth, whole = unpack('>dddddddd', ARGV[3], i)
  if sold >= s.born then -- not from before the key was lost
    local since = (s.time - sold) * 1000
    begin, ready = begin - since, ready - since
    if sold <= s.fixed then length = 0 end -- a Retime has moved the stretch
    local ahead = max(0, min(length, begin + length))
    local waits = ready > 0 -- then what it held was there since the sale
    if waits then
      ready = -since
      if bursty and (length == 0 or not upfront) then s.held = max(0, s.held - kept) end
    end
    if upfront and whole == 0 then number = -number end -- what is kept of it lies at its end: it can't fall
    if ahead > 0 and number == s.slot then -- the newest: as if it had never been
      s.debt, s.slot = s.debt - ahead, s.slot - whole
      fall()
      if base > 0 then s.stored = min(store, s.stored + (length - ahead) * refill) end
    elseif ahead > 0 then
      local back = 0
      if waits and bursty then back, kept = kept, 0 end
      free(number - whole, number, s.at + max(0, begin), ahead, back)
    end
    if base > 0 then
      s.stored = min(store, s.stored + kept) -- a stored permit is never cheaper than a fresh one
    else
      deposit(kept, ready, begin, begin + length - ahead, worth)
    end
  end
end

if touch > 0 and s.last <= s.at and s.debt > 0 and s.each > 0 then -- Retime, and nobody waits: the newest's debt scales
  s.debt = s.debt * (touch / s.each)
  s.slot, s.each, s.fixed = s.slot + 1, touch, s.time
end
if pause > 0 then
  s.hold = max(s.hold, s.at + pause)
elseif pause < 0 and s.held < 1e-6 then -- no stored permits were promised for its end
  s.hold = 0
  fall()
end
if s.hold > s.at + s.debt then -- until the pause ends nothing is promised: a stretch that nobody bought
  s.slot = s.slot + 1
  free(s.slot - 1, s.slot, s.at + s.debt, s.hold - s.at - s.debt, 0)
  s.debt, s.last = s.hold - s.at, s.hold
end

-- Deferred permits can be had at once if they suffice for the largest promise that may not be paid
-- for yet, and nobody pauses.
function at_once()
  return bursty and s.at >= s.hold and (upfront or s.deferred >= max(s.peak, s.newer)) and s.deferred or 0
end

stored, debt, time, slot, rooms = s.stored, s.debt, s.time, s.slot, s.rooms
born, newer, last, each = s.born, s.newer, s.last, s.each
end -- of the machine

-- The answer: the time, the limiter's own, the state before the requests (a double as an integer and the
-- rest in 2^-53ths), how many permits can be had at once in spite of a debt, and for each request
-- its wait in nanoseconds, or -1 - wait if it was refused.
local a = min(stored, longest)
local reply = {now, time, slot, a, a % 1 * 9007199254740992, debt, debt % 1 * 9007199254740992,
  s and min(at_once(), longest) or 0}
local count = 8
for i = 1, #ARGV[4], 16 do
  local permits, limit = unpack('>dd', ARGV[4], i)
  local taken, cost = permits, 0
  if interval == 0 then
    taken = 0
  else
    if permits > stored then
      taken = stored
      cost = (permits - stored) * interval
    end
    if base > 0 and taken > 0 then
      local rest, dear = taken, 0
      local over = stored - threshold
      if over > 0 then
        local part = min(over, rest)
        dear = part * (base + slope * (over - part * 0.5))
        rest = rest - part
      end
      cost = cost + (dear + base * rest)
    end
  end
  local wait = debt
  if upfront then wait = debt + cost end
  if wait > longest then wait = longest end
  wait = wait - wait % 1
  count = count + 1
  if wait > 0 and limit >= 0 and s and s.deferred > 0 and permits <= at_once() then
    rooms = note(rooms, time, room())
    s.deferred, changed, reply[count] = s.deferred - permits, true, 0
  elseif wait > limit then
    reply[count] = -1 - wait
  else
    if bursty and store > 0 and (wait == 0 or taken > 0) then -- it goes, or the store holds it
      rooms = note(rooms, time, s and room() or store - stored)
    end
    stored, debt, changed, reply[count] = stored - taken, min(debt + cost, longest), true, wait
    if cost > 0 then
      slot, last, each, newer = slot + 1, wait, interval, max(newer, permits)
    end
    if s then
      s.stored, s.debt, s.newer = stored, debt, newer
      if bursty and wait > 0 and (cost == 0 or not upfront) then s.held = s.held + taken end
      if cost > 0 then
        last = s.at + wait
        if upfront then s.deferred = min(s.deferred, max(0, store - max(s.peak, newer))) end
      end
    end
  end
end

if changed then
  local fill = 0
  if refill > 0 then fill = (store - stored) / refill end
  local ttl = min((debt + fill) / 1e6 + 1001, 9e12)
  if debt == 0 then
    if s then born = max(born, s.fixed + 1) end -- the end of those before a Retime is not where they think
    text = pack(short_form, short, now, time, capacity, stored, slot, born) .. rooms
  elseif s then
    text = pack(long_form, long, now, time, capacity, stored, debt, s.deferred, s.peak, newer, s.fence, s.hold, s.held,
      s.epoch, slot, born, last, each, s.fixed, #s.runs / 40) .. s.runs .. rooms
  else -- the debt begins now
    text = pack(long_form, long, now, time, capacity, stored, debt, 0, 0, newer, 0, 0, 0,
      time, slot, born, last, each, 0, 0) .. rooms
  end
  redis.call('SET', KEYS[1], text, 'PX', ttl - ttl % 1)
end
return reply
