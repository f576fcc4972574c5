-- One limiter's arithmetic, that of package smooth, on one key: the sale. One request for permits that are stored is
-- decided here, and by far the most are such. What else there is, a debt, refunds, pauses and lists of requests, is for
-- the machine (machine.lua), which follows: in Lua a table takes 1 us, and a function that might be called some 0.3.
--
-- ARGV[1] is doubles, the lowest byte first. The first seven are: what the capacity is (0: a time; 1: a number of permits;
-- 2: stored permits have a price), and 4 more if it is one request where they have none; the capacity; the permits that
-- a nanosecond stores; after what time no caller waits for the answer; the permits, how long the request may wait, in
-- nanoseconds, and by when it must be decided for the answer to reach its caller. The rest is for the machine.
--
-- The answer is doubles, too: the time; the limiter's own; and as it was before the requests, the number of the slot at
-- the end of the queue and the permits stored. If there is no more, the request has them now. After the time when
-- no caller waits it is the time alone.
--
-- A state without debt is short: a magic number; the terms that it was written under (what the capacity is, the capacity,
-- the permits that a nanosecond stores); how long the slowest terms that it has had need to fill the store; when it was
-- written; the limiter's own time then; the permits stored; the slot; when the key was made; and the headrooms (see
-- machine.lua). A missing key is a full store.
local pack, unpack, sub = struct.pack, struct.unpack, string.sub
local arg = ARGV[1]
local simple, capacity, refill, not_after, permits, limit, by = unpack('<ddddddd', arg)
local kind = simple % 4
local short, short_form, short_size, most_headrooms = 'pac\5', '<c4Bdddddddd', 69, 15 * 16 -- bytes

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if now > not_after then
  return pack('<d', now)
end
local text = redis.pcall('GET', KEYS[1])

if simple >= 4 then
  local magic, of, holds, flow, span, anchor, time = short, kind, capacity, refill, capacity / refill, now, now
  local stored, slot, born, size = capacity, 1, now, short_size
  if text then
    size = #text
    if size >= short_size then
      magic, of, holds, flow, span, anchor, time, stored, slot, born = unpack(short_form, text)
    end
  end
  if magic == short and holds == capacity and flow == refill and of == kind and now >= anchor and size >= short_size then
    time, stored = time + (now - anchor), stored + (now - anchor) * 1000 * refill
    if stored > capacity then stored = capacity end
    local left = stored - permits
    if left >= 0 and now <= by then
      local headroom = capacity - stored -- right before it goes; larger ones of before do not matter any more
      while size > short_size do
        local t, r = unpack('<dd', text, size - 15)
        if t == time then
          if r < headroom then headroom = r end
        elseif r < headroom then
          break
        end
        size = size - 16
      end
      if size < short_size + most_headrooms then
        local ttl = span / 1e6 + 1001
        if ttl > 9e12 then ttl = 9e12 end
        if size == short_size then
          text = pack('<c4Bdddddddddd', short, kind, capacity, refill, span, now, time, left, slot, born, time, headroom)
        else
          text = pack(short_form, short, kind, capacity, refill, span, now, time, left, slot, born)
            .. sub(text, short_size + 1, size) .. pack('<dd', time, headroom)
        end
        redis.call('SET', KEYS[1], text, 'PX', ttl - ttl % 1)
        return pack('<dddd', now, time, slot, stored)
      end
    end
  end
end
