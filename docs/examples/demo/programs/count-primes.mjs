// Computes for as many seconds as its argument says, and prints how far it is.
const seconds = Number(process.argv[2])
const end = performance.now() + seconds * 1000
let candidate = 1
let primes = 0
for (let step = 1; step <= 20; step += 1) {
  const pause = end - ((20 - step) * seconds * 1000) / 20
  while (performance.now() < pause) {
    candidate += 1
    let isPrime = true
    for (let divisor = 2; divisor * divisor <= candidate && isPrime; divisor += 1) isPrime = candidate % divisor !== 0
    if (isPrime) primes += 1
    if (candidate % 1000 === 0) await new Promise((resolve) => setTimeout(resolve, 4))
  }
  console.log(`progress ${step}/20`)
}
console.log(`${primes} primes up to ${candidate}`)
