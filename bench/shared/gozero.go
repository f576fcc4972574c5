package main

import (
	"context"

	"github.com/redis/go-redis/v9"
	"github.com/zeromicro/go-zero/core/limit"
	"github.com/zeromicro/go-zero/core/logx"
	zero "github.com/zeromicro/go-zero/core/stores/redis"
)

// goZero is go-zero's TokenLimiter. It makes a client of its own, to the same server.
func goZero(c *redis.Client) contender {
	logx.Disable()
	store := zero.MustNewRedis(zero.RedisConf{Host: c.Options().Addr, Type: zero.NodeType})
	l := limit.NewTokenLimiter(unreached, unreached, store, "gozero")
	return contender{"go-zero TokenLimiter", func(ctx context.Context) error {
		if !l.AllowCtx(ctx) {
			return errRefused
		}
		return nil
	}}
}
