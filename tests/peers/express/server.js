// One process of Express, with the middleware for idempotency keys that is usually written: the state of
// a key is in Redis, and the effect is a row in PostgreSQL.
//   PORT PGURL REDIS_PORT   where
//   KILL_AT=set|committed|stored KILL_ONE_OF=100   kills itself at this step of one request in 100
'use strict';
const express = require('express');
const Redis = require('ioredis');
const {Pool} = require('pg');

const IN_PROGRESS_S = 30;
const KEPT_S = 86400;
const redis = new Redis({port: Number(process.env.REDIS_PORT), host: '127.0.0.1'});
const pool = new Pool({connectionString: process.env.PGURL, max: 16});
let requests = 0;
const killed = Math.floor(Math.random() * Number(process.env.KILL_ONE_OF || 100));

const passes = step => {
  if (process.env.KILL_AT === step && requests % Number(process.env.KILL_ONE_OF || 100) === killed)
    process.kill(process.pid, 'SIGKILL');
};

const idempotent = async (request, response, next) => {
  const key = request.get('Idempotency-Key');
  if (!key) return response.status(400).json({title: 'no Idempotency-Key'});
  ++requests;
  const state = `idempotency:${key}`;
  if (await redis.set(state, '{"status":"processing"}', 'EX', IN_PROGRESS_S, 'NX') === null) {
    const known = JSON.parse(await redis.get(state) || '{"status":"processing"}');
    if (known.status === 'processing')
      return response.status(409).set('Retry-After', '1').json({title: 'in progress'});
    return response.status(known.code).set('Idempotent-Replayed', 'true').json(known.body);
  }
  passes('set');
  response.locals.store = async (code, body) => {
    passes('committed');
    await redis.set(state, JSON.stringify({status: 'completed', code, body}), 'EX', KEPT_S);
    passes('stored');
    response.status(code).json(body);
  };
  next();
};

const app = express();
app.use(express.json());
app.post('/payments', idempotent, async (request, response) => {
  const {id, account, amount_minor: amount} = request.body;
  await pool.query('INSERT INTO payments (id, account, amount_minor) VALUES ($1, $2, $3)',
                   [id, account, amount]);
  await response.locals.store(200, {status: 'booked'});
});
app.listen(Number(process.env.PORT), '127.0.0.1', () => console.log('listens'));
