import type { Race, RaceOptions } from 'agent-tasks/testing'

function openShop(race: Race) {
  const shop = {
    stock: 1,
    sold: 0,
    /** Checks the stock, awaits the payment, then changes the stock. */
    buy: async () => {
      if (shop.stock === 0) return
      await race.pause('the payment goes through')
      shop.stock -= 1
      shop.sold += 1
    },
  }
  return shop
}

type Shop = ReturnType<typeof openShop>

export const shop: RaceOptions<Shop> = {
  name: 'shop',
  setup: openShop,
  actors: {
    alice: [{ label: 'buys', run: ({ buy }) => buy() }],
    bob: [{ label: 'buys', run: ({ buy }) => buy() }],
  },
  invariants: { 'no more is sold than was in stock': ({ sold }) => sold <= 1 },
}
