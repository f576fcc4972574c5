-- One limiter's arithmetic, that of package smooth, on one key: the sale. A request for permits that are stored is
-- decided here, and by far the most are such. What else there is, a debt, refunds, pauses and lists of requests, is for
-- the machine (machine.lua), which follows: in Lua a table takes 1 us, and a function that might be called some 0.3.
--
-- ARGV[1] is doubles, the highest byte first: the terms, the time after which nobody waits for the answer any more,
-- how much is asked for beside permits (0: nothing; else 1 and the number of refunds), the number of requests, and for
-- each request its permits and how long it may wait, in nanoseconds. (One that asks for no permits is written as 0, 0
-- and not counted.) Then, if more is asked: a pause, whether the state is to be written in any case, and the refunds.
--
-- The answer is doubles, too: the time; the limiter's own; and as it was before the requests, the number of the slot at
-- the end of the queue, the permits stored, the debt, and the permits that can be had at once in spite of a debt. Then
-- for each request its wait, or -1 - wait if it was refused. After the time that was given it is the time alone.
--
-- A state without debt is short: a magic number, when it was written, the limiter's own time then, its capacity, the
-- permits stored, the slot, when the key was made, and the rooms. A missing key is a full store.
local struct, string = struct, string
local pack, unpack, sub = struct.pack, struct.unpack, string.sub
local arg = ARGV[1]
local capacity, interval, refill, base, threshold, slope, flags, not_after, more, count, permits, limit =
  unpack('>dddddddddddd', arg)
local short, short_form, short_size = 'pac\1', '>c4dddddd', 52
local most_rooms = 128 * 16 -- bytes

local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
if now > not_after then
  return pack('>d', now)
end
local text = redis.call('GET', KEYS[1])

if count == 1 and more == 0 and base == 0 and interval > 0 and limit >= 0 then
  local magic, anchor, time, of, stored, slot, born = short, now, now, capacity, capacity, 1, now
  local rooms = ''
  if text and #text >= short_size then
    magic, anchor, time, of, stored, slot, born = unpack(short_form, text)
    rooms = sub(text, short_size + 1)
  elseif text then
    magic = ''
  end
  if magic == short and of == capacity and now >= anchor then
    time, stored = time + (now - anchor), stored + (now - anchor) * 1000 * refill
    if stored > capacity then stored = capacity end
    if permits <= stored then
      local room, n = capacity - stored, #rooms -- before it goes: see note
      while n > 0 do
        local t, r = unpack('>dd', rooms, n - 15)
        if t == time then
          if r < room then room = r end
        elseif r < room then
          break
        end
        n = n - 16
      end
      if n < most_rooms then
        rooms = sub(rooms, 1, n) .. pack('>dd', time, room)
        local left = stored - permits
        local ttl = (capacity - left) / refill / 1e6 + 1001
        if ttl > 9e12 then ttl = 9e12 end
        redis.call('SET', KEYS[1], pack(short_form, short, now, time, capacity, left, slot, born) .. rooms,
          'PX', ttl - ttl % 1)
        return pack('>ddddddd', now, time, slot, stored, 0, 0, 0)
      end
    end
  end
end
