"""The plain broker of tests beside RabbitMQ: workers meet the same in both."""
